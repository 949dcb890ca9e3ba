//! Event streams of one run or of all runs.

use reqwest::{Response, Url, header};

use super::{Client, with_query};
use crate::contract::EventsQuery;
use crate::error::{ClientError, UNREADABLE};

/// Bytes of one event: an entry of a journal, with its values.
const EVENT_BYTES: usize = 16 << 20;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerEvent {
    /// Where to go on after a break.
    pub id: Option<String>,
    /// The kind of the event.
    pub event: String,
    /// JSON.
    pub data: String,
}

/// A stream of events. It ends when the server closes it; missed events come when it is opened again with the last
/// id that was seen.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    lines: SseLines,
    open: ServerEvent,
    base: String,
}

impl Client {
    /// The changes of all runs from now on.
    pub async fn events(&self, last: Option<&str>) -> Result<EventStream, ClientError> {
        self.stream(&["events"], last).await
    }

    /// The events of these topics from now on: `run:ID`, `runs`, `queues`, …. After the event `hello` every change is
    /// sent.
    pub async fn topics(&self, topics: &[&str], last: Option<&str>) -> Result<EventStream, ClientError> {
        let query = EventsQuery { topics: Some(topics.join(",")), last_event_id: None };
        self.stream_of(with_query(self.native(&["events"]), &query), last).await
    }

    pub(super) async fn stream(
        &self,
        segments: &[&str],
        last: Option<&str>,
    ) -> Result<EventStream, ClientError> {
        self.stream_of(self.native(segments), last).await
    }

    async fn stream_of(&self, url: Url, last: Option<&str>) -> Result<EventStream, ClientError> {
        let request = self.http.get(url).header(header::ACCEPT, "text/event-stream");
        let mut request = self.authorized(request);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let sending = |error: reqwest::Error| ClientError::sending(&error, self.base());
        let response = request.send().await.map_err(sending)?;
        let status = response.status();
        if !status.is_success() {
            let body = response.bytes().await.map_err(sending)?;
            return Err(ClientError::answered(status, None, &body));
        }
        Ok(EventStream {
            response,
            lines: SseLines::default(),
            open: ServerEvent::default(),
            base: self.base().to_owned(),
        })
    }
}

impl EventStream {
    /// The next event; `None` = the server closed the stream.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, ClientError> {
        loop {
            while let Some(line) = self.lines.next() {
                if let Some(event) = self.open.take_line(&line) {
                    return Ok(Some(event));
                }
            }
            let chunk = self.response.chunk().await;
            match chunk.map_err(|error| ClientError::sending(&error, &self.base))? {
                Some(chunk) => self.lines.push(&chunk)?,
                None => return Ok(None),
            }
            if self.open.data.len() > EVENT_BYTES {
                return Err(too_large());
            }
        }
    }
}

impl ServerEvent {
    /// Takes one line; an empty one ends the event, if it has any data.
    fn take_line(&mut self, line: &str) -> Option<ServerEvent> {
        if line.is_empty() {
            let event = std::mem::take(self);
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            // A comment (a keep-alive), or an unknown field.
            _ => {}
        }
        None
    }
}

/// Bytes that come in pieces, given back as lines.
#[derive(Debug, Default)]
struct SseLines {
    bytes: Vec<u8>,
    /// Where the next line begins.
    at: usize,
}

impl SseLines {
    fn push(&mut self, chunk: &[u8]) -> Result<(), ClientError> {
        self.bytes.drain(..self.at);
        self.at = 0;
        if self.bytes.len().saturating_add(chunk.len()) > EVENT_BYTES {
            return Err(too_large());
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn next(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.at..)?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(rest.get(..end)?);
        let line = line.strip_suffix('\r').unwrap_or(&line).to_owned();
        self.at += end + 1;
        Some(line)
    }
}

fn too_large() -> ClientError {
    ClientError::local(UNREADABLE, format!("an event is larger than {EVENT_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> Vec<ServerEvent> {
        let (mut lines, mut open, mut events) = (SseLines::default(), ServerEvent::default(), Vec::new());
        for piece in pieces {
            lines.push(piece.as_bytes()).unwrap();
            while let Some(line) = lines.next() {
                events.extend(open.take_line(&line));
            }
        }
        events
    }

    #[test]
    fn events_come_whole_however_they_are_cut() {
        let events = read(&[
            ": alive\n\nid: 1\nev",
            "ent: entry\nda",
            "ta: {\"a\":",
            "1}\r\n",
            "\ndata: x\ndata: y\n\n",
        ]);
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].id.as_deref(), Some("1"));
        assert_eq!((events[0].event.as_str(), events[0].data.as_str()), ("entry", r#"{"a":1}"#));
        assert_eq!(events[1].data, "x\ny");
    }

    #[test]
    fn an_event_without_an_end_is_not_told() {
        assert!(read(&["data: {}\n"]).is_empty());
    }
}
