//! Greedy generation and its speed: `generate MODEL.gguf [PROMPT] [TOKENS]`.

use std::io::Write;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: generate MODEL.gguf [PROMPT] [TOKENS]")?;
    let prompt = arguments.next().unwrap_or_else(|| "What is the capital of France? Answer in one sentence.".into());
    let count: usize = arguments.next().map_or(Ok(64), |count| count.parse())?;

    let started = Instant::now();
    let runtime = punchcard_local::Runtime::open(path.as_ref())?;
    println!("loaded in {:.2} s", started.elapsed().as_secs_f64());

    let text = format!("<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n");
    let ids = runtime.tokenizer().encode(&text, true);
    // Once for the threads to start and the kernels' caches to fill.
    let mut sequence = runtime.model().sequence();
    runtime.model().forward(&mut sequence, &ids, false)?;
    sequence.rewind(0)?;
    let started = Instant::now();
    let mut logits = runtime.model().forward(&mut sequence, &ids, false)?;
    let prefill = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let mut generated = 0;
    while generated < count {
        let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap_or(0) as u32;
        if runtime.eos_token_ids().contains(&best) {
            break;
        }
        std::io::stdout().write_all(&runtime.tokenizer().decode(&[best], false)?)?;
        std::io::stdout().flush()?;
        logits = runtime.model().forward(&mut sequence, &[best], false)?;
        generated += 1;
    }
    let decode = started.elapsed().as_secs_f64();
    println!("\nprompt: {} tokens, {:.1} tokens/s", ids.len(), ids.len() as f64 / prefill);
    println!("answer: {generated} tokens, {:.1} tokens/s", generated as f64 / decode);
    Ok(())
}
