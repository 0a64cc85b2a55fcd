//! Table with named columns, as CSV (RFC 4180) and JSON.
//!
//! Pure. Rule: a CSV cell that a spreadsheet would interpret as a formula is marked as text, because names
//! are untrusted.

use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub columns: Vec<&'static str>,
    /// Rows, each with a value for each column; null where there is none.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// As CSV, with the names in the first line.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let names = self.columns.iter().map(|name| (*name).to_owned());
        line(&mut text, names);
        for row in &self.rows {
            line(&mut text, row.iter().map(cell));
        }
        text
    }

    /// As JSON: an array of objects, without fields that are null.
    #[must_use]
    pub fn json(&self) -> String {
        let object = |row: &Vec<Value>| {
            let there = self.columns.iter().zip(row).filter(|(_, value)| !value.is_null());
            Value::Object(
                there.map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Map<_, _>>(),
            )
        };
        let mut text = String::from("[");
        for (at, row) in self.rows.iter().enumerate() {
            text.push_str(if at == 0 { "\n" } else { ",\n" });
            text.push_str(&object(row).to_string());
        }
        text.push_str("\n]\n");
        text
    }
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            text.push(',');
        }
        match cell.contains(['"', ',', '\n', '\r']) {
            true => text.push_str(&format!("\"{}\"", cell.replace('"', "\"\""))),
            false => text.push_str(&cell),
        }
    }
    text.push_str("\r\n");
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(cell).collect();
            parts.join(" ")
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_are_quoted_where_they_must_be_and_never_formulas() {
        let row = vec![json!("a,\"b\"\n"), json!("=1+1"), json!(1.5), json!(["x", "y"]), Value::Null];
        let table = Table { columns: vec!["a", "b", "c", "d", "e"], rows: vec![row] };
        assert_eq!(table.csv(), "a,b,c,d,e\r\n\"a,\"\"b\"\"\n\",'=1+1,1.5,x y,\r\n");
        let read: Value = serde_json::from_str(&table.json()).unwrap();
        assert_eq!(read, json!([{"a": "a,\"b\"\n", "b": "=1+1", "c": 1.5, "d": ["x", "y"]}]));
        assert_eq!(Table::default().json(), "[\n]\n");
    }
}
