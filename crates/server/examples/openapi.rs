//! Prints the OpenAPI document: `./x types` makes the types of the console from it.

#[expect(clippy::print_stdout, reason = "the document is the output of the program")]
fn main() {
    println!("{}", windlass_server::openapi());
}
