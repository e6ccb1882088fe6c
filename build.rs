//! Compresses the viewer of reports, which the program has in it.

#[path = "build/pack.rs"]
mod pack;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    pack::texts("web.z", "web", &["js", "css"])
}
