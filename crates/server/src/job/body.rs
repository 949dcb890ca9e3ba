//! Bodies that describe new jobs. A valid body is parsed once and moved; only an invalid one is read again field by
//! field, so that the answer names every problem.

use std::fmt;
use std::marker::PhantomData;

use axum::body::Bytes;
use serde::de::{
    self, Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;
use windlass_engine::job::JobSpec;
use windlass_engine::limits::PROBLEMS;
use windlass_engine::problem::{Problem, Problems};
use windlass_runtime::jobs::BATCH_MAX;

use crate::extract;
use crate::fields::{BodyFields, named, refused};
use crate::guard::LARGE_BYTES;
use crate::ignored::IgnoredFields;
use crate::problem::{ApiError, ApiResult, Code};

/// A job as one surface writes it.
pub(crate) trait JobBody: DeserializeOwned + Send + 'static {
    /// The surface's word for several of them, for messages.
    const PLURAL: &'static str;

    /// The job; `None` if the surface forbids a combination of its fields.
    fn into_spec(self) -> Option<JobSpec>;

    /// The job as far as it can be read, and every problem with a path from `$`.
    fn examine(fields: BodyFields) -> (JobSpec, Vec<Problem>);
}

/// Whether a body holds several jobs.
pub(crate) fn is_array(bytes: &Bytes) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Reads a body that describes one job.
pub(crate) fn read_one<B: JobBody>(bytes: &Bytes) -> ApiResult<JobSpec> {
    let parsed = serde_json::from_slice::<ObjectOnly<B>>(bytes).ok();
    if let Some(spec) = parsed.and_then(|ObjectOnly(body)| body.into_spec()) {
        return Ok(spec);
    }
    let (spec, problems) = B::examine(BodyFields::of_body(bytes)?);
    if problems.is_empty() { Ok(spec) } else { Err(refused(problems)) }
}

/// Reads a body that describes up to [`BATCH_MAX`] jobs.
pub(crate) async fn read_many<B: JobBody>(bytes: Bytes) -> ApiResult<Vec<JobSpec>> {
    if bytes.len() <= LARGE_BYTES {
        return read_array::<B>(&bytes);
    }
    let ignored = IgnoredFields::current();
    let read =
        tokio::task::spawn_blocking(move || IgnoredFields::noted_by(ignored, || read_array::<B>(&bytes)));
    read.await.map_err(|_| ApiError::new(Code::Internal, "the body could not be read: report it"))?
}

fn read_array<B: JobBody>(bytes: &Bytes) -> ApiResult<Vec<JobSpec>> {
    let parsed = serde_json::from_slice::<BoundedArray<B>>(bytes).ok();
    if let Some(specs) = parsed.and_then(|BoundedArray(all)| all.into_iter().map(B::into_spec).collect()) {
        return Ok(specs);
    }
    let wrong = |reason: String| Err(ApiError::field(Code::InvalidFields, "$", reason));
    // Counted before they are kept: there may be millions.
    let n = serde_json::from_slice::<Vec<IgnoredAny>>(bytes).map_or(0, |items| items.len());
    if n > BATCH_MAX {
        return wrong(format!("it has {n} {}: give at most {BATCH_MAX}, and the others after", B::PLURAL));
    }
    let items = match extract::parse(bytes)? {
        Value::Array(items) => items,
        other => return wrong(format!("it is {}: give an array of {}", named(&other), B::PLURAL)),
    };
    let (mut specs, mut problems) = (Vec::with_capacity(items.len()), Problems::default());
    let mut all = Vec::new();
    for (n, item) in items.into_iter().enumerate() {
        match item {
            Value::Object(left) => {
                let (spec, found) = B::examine(BodyFields::of(format!("$[{n}]"), left));
                specs.push(spec);
                all.extend(found);
            }
            other => problems.error(format!("$[{n}]"), format!("it is {}: give an object", named(&other))),
        }
        if all.len() >= PROBLEMS {
            break;
        }
    }
    all.extend(problems.into_list());
    if all.is_empty() { Ok(specs) } else { Err(refused(all)) }
}

/// A value that is read only from an object: serde also takes an array for the fields of a struct in their order.
struct ObjectOnly<B>(B);

impl<'de, B: DeserializeOwned> Deserialize<'de> for ObjectOnly<B> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<B>(PhantomData<B>);
        impl<'de, B: DeserializeOwned> Visitor<'de> for ObjectVisitor<B> {
            type Value = ObjectOnly<B>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ObjectOnly<B>, A::Error> {
                B::deserialize(de::value::MapAccessDeserializer::new(map)).map(ObjectOnly)
            }
        }
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// At most [`BATCH_MAX`] objects.
struct BoundedArray<B>(Vec<B>);

impl<'de, B: DeserializeOwned> Deserialize<'de> for BoundedArray<B> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ArrayVisitor<B>(PhantomData<B>);
        impl<'de, B: DeserializeOwned> Visitor<'de> for ArrayVisitor<B> {
            type Value = BoundedArray<B>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<BoundedArray<B>, A::Error> {
                let mut all = Vec::new();
                while let Some(ObjectOnly(item)) = items.next_element()? {
                    if all.len() == BATCH_MAX {
                        return Err(de::Error::custom("too many"));
                    }
                    all.push(item);
                }
                Ok(BoundedArray(all))
            }
        }
        from.deserialize_seq(ArrayVisitor(PhantomData))
    }
}
