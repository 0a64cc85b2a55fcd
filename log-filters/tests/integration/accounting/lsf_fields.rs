//! Parser of the fields of an LSF record.

/// Split a record at blanks; a field in double quotes may contain blanks, and a doubled quote is one quote.
pub(crate) fn fields(line: &str) -> Vec<String> {
    let mut fields = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let mut field = String::new();
        if let Some(mut quoted) = rest.strip_prefix('"') {
            while let Some((part, after)) = quoted.split_once('"') {
                field.push_str(part);
                match after.strip_prefix('"') {
                    Some(more) => {
                        field.push('"');
                        quoted = more;
                    }
                    None => {
                        rest = after.trim_start();
                        break;
                    }
                }
            }
        } else {
            let (part, after) = rest.split_once(' ').unwrap_or((rest, ""));
            field.push_str(part);
            rest = after.trim_start();
        }
        fields.push(field);
    }
    fields
}
