//! Methods whose parameters and answers have types, from which their help is derived.
//!
//! Not here: the types (`wire::api`), how they are written (`codec`).

use crate::codec;
use crate::elsewhere::Caller;
use crate::fault::Fault;
use crate::method::{Declaration, Handler, Method, Reading};
use crate::params::Params;
use crate::schema;
use crate::written::{Answered, Answering};
use std::future::Future;
use wire::api::{Effect, Request, Subject};
use wire::query::Form;

impl Declaration {
    /// The method of these parameters.
    #[must_use]
    pub fn of<R: Request>() -> Declaration {
        let (params, answer) = (schema::of_params::<R>(), schema::of_answer::<R::Answer>());
        let (summary, details) = schema::summary_and_details(&params);
        let mut declaration = Declaration::new(R::METHOD, summary)
            .details(details)
            .returns(schema::xml_type(&answer), schema::outline(&answer));
        declaration.reading = match R::EFFECT {
            Effect::Reads => Reading::Only,
            Effect::KeepsForClient => Reading::ForAsker,
            Effect::Changes => Reading::Changes,
            Effect::ChangesByProof => Reading::Signed,
        };
        declaration = schema::parameters(&params).into_iter().fold(declaration, Declaration::parameter);
        match R::SUBJECT {
            Subject::Daemon => declaration,
            Subject::Domain => declaration.of_domain(),
            Subject::Host => declaration.of_host(),
        }
    }
}

/// The method of these parameters, answered by `handler`.
#[must_use]
pub fn method<R, H, F>(handler: H) -> Method
where
    R: Request,
    H: Fn(&Caller, R) -> F + Send + Sync + 'static,
    F: Future<Output = Result<R::Answer, Fault>> + Send + 'static,
{
    let handler = move |caller: &Caller, params: Params, form: Option<Form>| {
        let asked = params.typed::<R>().map(|request| handler(caller, request));
        Box::pin(async move { answered::<R>(&asked?.await?, form) }) as Answering
    };
    Method { declaration: Declaration::of::<R>(), handler: Handler::Daemon(Box::new(handler)) }
}

/// Likewise, where `handler` writes the document itself, as its type would be written: for long lists, of which it copies nothing.
#[must_use]
pub fn method_writing<R, H, F>(handler: H) -> Method
where
    R: Request,
    H: Fn(R, Option<Form>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Answered, Fault>> + Send + 'static,
{
    let handler = move |_: &Caller, params: Params, form: Option<Form>| {
        let asked = params.typed::<R>().map(|request| handler(request, form));
        Box::pin(async move { asked?.await }) as Answering
    };
    Method { declaration: Declaration::of::<R>(), handler: Handler::Daemon(Box::new(handler)) }
}

/// The answer, as it is wanted.
fn answered<R: Request>(answer: &R::Answer, form: Option<Form>) -> Result<Answered, Fault> {
    let answered = match form {
        Some(form) => codec::document(form, answer, R::RENAMED).map(|text| Answered::Written(text.into())),
        None => codec::value(answer, R::RENAMED).map(Answered::Value),
    };
    answered.map_err(|error| Fault::internal(format!("{}: {error}", R::METHOD)))
}
