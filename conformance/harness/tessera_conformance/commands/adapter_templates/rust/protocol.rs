//! The line protocol of the Tessera conformance suite, without any crate: one JSON-RPC 2.0 message a line.
//!
//! docs/protocol.md of the project describes it. Standard output carries messages only: log to standard error.
#![allow(dead_code)]

use std::fmt::Write as _;
use std::io::{self, BufRead, Write as _};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

static NULL: Json = Json::Null;

impl Json {
    /// The value that a text stands for; panics where it is not JSON, which the harness sees as a crash.
    pub fn parse(text: &str) -> Json {
        let mut reader = Reader { text: text.as_bytes(), at: 0 };
        reader.value()
    }

    /// The member of an object; null where there is none.
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(members) => members.iter().find(|(name, _)| name == key).map_or(&NULL, |(_, value)| value),
            _ => &NULL,
        }
    }

    /// The items of an array.
    pub fn items(&self) -> &[Json] {
        match self {
            Json::Array(items) => items,
            _ => &[],
        }
    }

    /// The text, or "" where it is none.
    pub fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            _ => "",
        }
    }

    /// The number, or 0 where it is none.
    pub fn number(&self) -> f64 {
        match self {
            Json::Number(number) => *number,
            _ => 0.0,
        }
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> u8 {
        while self.text.get(self.at).map_or(false, u8::is_ascii_whitespace) {
            self.at += 1;
        }
        *self.text.get(self.at).expect("a request is not JSON: it ends too early")
    }

    fn value(&mut self) -> Json {
        match self.next() {
            b'{' => Json::Object(self.list(b'}', |reader| {
                reader.next();
                let key = reader.string();
                assert_eq!(reader.next(), b':', "a key has no value");
                reader.at += 1;
                (key, reader.value())
            })),
            b'[' => Json::Array(self.list(b']', |reader| reader.value())),
            b'"' => Json::Text(self.string()),
            b't' => self.word(4, Json::Bool(true)),
            b'f' => self.word(5, Json::Bool(false)),
            b'n' => self.word(4, Json::Null),
            _ => {
                let rest = &self.text[self.at..];
                let length = rest.iter().take_while(|c| b"+-.eE0123456789".contains(c)).count();
                self.at += length;
                let digits = std::str::from_utf8(&rest[..length]).unwrap();
                Json::Number(digits.parse().expect("a value is missing"))
            }
        }
    }

    fn word(&mut self, length: usize, value: Json) -> Json {
        self.at += length;
        value
    }

    fn list<T>(&mut self, closing: u8, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        self.at += 1;
        let mut items = Vec::new();
        while self.next() != closing {
            items.push(item(self));
            if self.next() == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        items
    }

    fn string(&mut self) -> String {
        let mut bytes = Vec::new();
        self.at += 1;
        while self.text[self.at] != b'"' {
            if self.text[self.at] != b'\\' {
                bytes.push(self.text[self.at]);
                self.at += 1;
                continue;
            }
            let escape = self.text[self.at + 1];
            self.at += 2;
            let letter = match escape {
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.escaped(),
                other => other as char,
            };
            bytes.extend(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.at += 1;
        String::from_utf8(bytes).expect("a request is UTF-8")
    }

    fn escaped(&mut self) -> char {
        let mut code = self.unit();
        if (0xD800..0xDC00).contains(&code) && self.text[self.at] == b'\\' {
            self.at += 2;
            code = 0x10000 + ((code - 0xD800) << 10) + (self.unit().wrapping_sub(0xDC00) & 0x3FF);
        }
        char::from_u32(code).unwrap_or('\u{FFFD}')
    }

    fn unit(&mut self) -> u32 {
        let digits = std::str::from_utf8(&self.text[self.at..self.at + 4]).unwrap();
        self.at += 4;
        u32::from_str_radix(digits, 16).expect("four hexadecimal digits")
    }
}

/// A text as JSON has it.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            control if control < ' ' => write!(out, "\\u{:04x}", control as u32).unwrap(),
            other => out.push(other),
        }
    }
    out + "\""
}

/// A tensor: the words of all elements as little-endian bytes, row-major.
#[derive(Clone)]
pub struct Tensor {
    pub dtype: String,
    pub shape: Vec<usize>,
    pub data: Vec<u8>,
}

impl Tensor {
    /// A tensor of a request; a large one comes as a file of its bytes.
    pub fn read(message: &Json) -> Tensor {
        let value = message.get("$tensor");
        let dtype = value.get("dtype").text().to_string();
        let shape = value.get("shape").items().iter().map(|extent| extent.number() as usize).collect();
        if let Json::Text(path) = value.get("file") {
            let data = std::fs::read(path).expect("the file of a tensor can be read");
            return Tensor { dtype, shape, data };
        }
        let digits = value.get("bits").text();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        let data = in_other_order((0..digits.len()).step_by(2).map(byte).collect(), word_bytes(&dtype));
        Tensor { dtype, shape, data }
    }

    /// A tensor of an answer. It may stand inline whatever its size.
    pub fn write(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let mut bits = String::with_capacity(2 * self.data.len());
        for byte in in_other_order(self.data.clone(), word_bytes(&self.dtype)) {
            write!(bits, "{byte:02x}").unwrap();
        }
        let (dtype, shape) = (quoted(&self.dtype), shape.join(","));
        format!(r#"{{"$tensor":{{"dtype":{dtype},"shape":[{shape}],"bits":"{bits}"}}}}"#)
    }

    /// The elements of a tensor of fp32.
    pub fn floats(&self) -> Vec<f32> {
        self.data.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// A tensor of fp32.
    pub fn of_floats(shape: Vec<usize>, values: &[f32]) -> Tensor {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { dtype: "fp32".to_string(), shape, data }
    }
}

/// The bytes of one word; an element of complex64 or complex128 is two words.
fn word_bytes(dtype: &str) -> usize {
    match dtype {
        "fp64" | "int64" | "complex128" => 8,
        "fp32" | "tf32" | "int32" | "complex64" => 4,
        "fp16" | "bf16" | "int16" => 2,
        _ => 1,
    }
}

/// Hexadecimal digits begin with the most significant byte of a word.
fn in_other_order(mut data: Vec<u8>, width: usize) -> Vec<u8> {
    data.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    data
}

/// The outcome of what worked.
pub fn returned(value: &str) -> String {
    format!(r#"{{"returned":{value}}}"#)
}

/// The outcome of what worked and gave tensors.
pub fn outputs(tensors: &[Tensor]) -> String {
    let written: Vec<String> = tensors.iter().map(Tensor::write).collect();
    returned(&format!(r#"{{"outputs":[{}]}}"#, written.join(",")))
}

/// The outcome of what is not there.
pub fn unsupported(feature: &str) -> String {
    format!(r#"{{"unsupported":{{"feature":{}}}}}"#, quoted(feature))
}

/// The outcome of what is refused; `code` is a category of diagnostics, or a status, TESS_ERR_INVALID_VALUE.
pub fn rejected(code: &str, phase: &str, message: &str) -> String {
    let (quoted_code, phase, message) = (quoted(code), quoted(phase), quoted(message));
    let diagnostic = match code.starts_with("TESS_") {
        true => String::new(),
        false => format!(r#"{{"category":{quoted_code},"message":{message}}}"#),
    };
    format!(
        r#"{{"rejected":{{"code":{quoted_code},"phase":{phase},"message":{message},"diagnostics":[{diagnostic}]}}}}"#
    )
}

/// Answer requests until the session is closed. `answer` gives an outcome, or None for a method that it does not know.
pub fn serve(hello: &str, mut answer: impl FnMut(&str, &Json) -> Option<String>) {
    for line in io::stdin().lock().lines() {
        let request = Json::parse(&line.expect("a request is UTF-8"));
        let method = request.get("method").text();
        let result = match answer(method, request.get("params")) {
            _ if method == "session.open" => hello.to_string(),
            Some(outcome) => outcome,
            None if method.starts_with("session.") => returned("{}"),
            None => unsupported(method),
        };
        println!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.get("id").number());
        io::stdout().flush().expect("the harness reads");
        if method == "session.close" {
            break;
        }
    }
}
