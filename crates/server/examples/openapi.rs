//! Prints the OpenAPI document: `./x types` makes the types of the console from it.

fn main() {
    println!("{}", windlass_server::openapi());
}
