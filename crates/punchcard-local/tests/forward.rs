//! The forward pass against a plain one in double precision, written from the definition.
#![allow(missing_docs)]

mod common;

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QTensor};
use common::{File, Random, Shape, Temporary, model};
use punchcard_local::{Error, Runtime};
use std::collections::HashMap;

const LLAMA: Shape =
    Shape { architecture: "llama", blocks: 2, width: 32, hidden: 48, heads: 4, kv_heads: 2, vocab: 272, context: 640 };
const QWEN: Shape = Shape { architecture: "qwen2", heads: 2, kv_heads: 1, ..LLAMA };

type Weights = HashMap<String, Vec<f64>>;

fn weights(file: &File) -> Weights {
    let floats = |bytes: &[u8]| bytes.chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect();
    file.tensors.iter().map(|tensor| (tensor.name.clone(), floats(&tensor.bytes))).collect()
}

fn times(weights: &[f64], input: &[f64]) -> Vec<f64> {
    weights.chunks(input.len()).map(|row| row.iter().zip(input).map(|(a, b)| a * b).sum()).collect()
}

fn norm(input: &[f64], weights: &[f64]) -> Vec<f64> {
    let mean: f64 = input.iter().map(|x| x * x).sum::<f64>() / input.len() as f64;
    input.iter().zip(weights).map(|(x, w)| x / (mean + 1e-6).sqrt() * w).collect()
}

/// Turns each pair of a head's vector by an angle that falls with the pair's index and grows with the position.
fn rotate(vector: &mut [f64], position: usize, adjacent: bool) {
    let half = vector.len() / 2;
    for i in 0..half {
        let angle = position as f64 * 5000f64.powf(-(i as f64) / half as f64);
        let (a, b) = if adjacent { (2 * i, 2 * i + 1) } else { (i, i + half) };
        let (x, y) = (vector[a], vector[b]);
        vector[a] = x * angle.cos() - y * angle.sin();
        vector[b] = x * angle.sin() + y * angle.cos();
    }
}

/// The logits after each token.
fn reference(shape: &Shape, weights: &Weights, ids: &[u32]) -> Vec<Vec<f64>> {
    let (dim, group) = (shape.width / shape.heads, shape.heads / shape.kv_heads);
    let embedding = &weights["token_embd.weight"];
    let mut stream: Vec<Vec<f64>> =
        ids.iter().map(|&id| embedding[id as usize * shape.width..][..shape.width].to_vec()).collect();
    for block in 0..shape.blocks {
        let part = |name: &str| &weights[&format!("blk.{block}.{name}")];
        let projected = |name: &str, input: &[f64]| {
            let mut output = times(part(&format!("{name}.weight")), input);
            if let Some(bias) = weights.get(&format!("blk.{block}.{name}.bias")) {
                output.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
            }
            output
        };
        let (mut keys, mut values): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        for (position, row) in stream.iter_mut().enumerate() {
            let input = norm(row, part("attn_norm.weight"));
            let (mut query, mut key) = (projected("attn_q", &input), projected("attn_k", &input));
            query.chunks_mut(dim).for_each(|head| rotate(head, position, shape.architecture == "llama"));
            key.chunks_mut(dim).for_each(|head| rotate(head, position, shape.architecture == "llama"));
            keys.push(key);
            values.push(projected("attn_v", &input));
            let mut attended = Vec::new();
            for head in 0..shape.heads {
                let (q, at) = (&query[head * dim..][..dim], head / group * dim);
                let scores: Vec<f64> = keys
                    .iter()
                    .map(|key| (q.iter().zip(&key[at..]).map(|(a, b)| a * b).sum::<f64>() / (dim as f64).sqrt()).exp())
                    .collect();
                let total: f64 = scores.iter().sum();
                attended.extend((0..dim).map(|i| {
                    scores.iter().zip(&values).map(|(score, value)| score / total * value[at + i]).sum::<f64>()
                }));
            }
            row.iter_mut().zip(times(part("attn_output.weight"), &attended)).for_each(|(x, y)| *x += y);
            let input = norm(row, part("ffn_norm.weight"));
            let (gate, up) = (times(part("ffn_gate.weight"), &input), times(part("ffn_up.weight"), &input));
            let hidden: Vec<f64> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            row.iter_mut().zip(times(part("ffn_down.weight"), &hidden)).for_each(|(x, y)| *x += y);
        }
    }
    let output = weights.get("output.weight").unwrap_or(embedding);
    stream.iter().map(|row| times(output, &norm(row, &weights["output_norm.weight"]))).collect()
}

fn open(name: &str, file: &File) -> Runtime {
    let temporary = Temporary::new(name, &file.bytes());
    Runtime::open(&temporary.0).unwrap()
}

fn ids(count: usize, vocab: usize) -> Vec<u32> {
    let mut random = Random(3);
    (0..count).map(|_| (random.next() % vocab as u64) as u32).collect()
}

fn assert_close(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < tolerance, "{found} is not {expected}");
    }
}

#[test]
fn logits_are_those_of_the_definition() {
    for (shape, tied) in [(&LLAMA, true), (&LLAMA, false), (&QWEN, true), (&QWEN, false)] {
        let file = model(shape, tied);
        let runtime = open(&format!("definition-{}-{tied}", shape.architecture), &file);
        let ids = ids(40, shape.vocab);
        let expected = reference(shape, &weights(&file), &ids);
        let found = runtime.model().forward(&mut runtime.model().sequence(), &ids, true).unwrap();
        assert_close(&found, &expected.concat(), 2e-3);
    }
}

#[test]
fn long_prompts_pass_in_chunks() {
    let file = model(&QWEN, true);
    let runtime = open("chunks", &file);
    let ids = ids(620, QWEN.vocab);
    let expected = reference(&QWEN, &weights(&file), &ids);
    let found = runtime.model().forward(&mut runtime.model().sequence(), &ids, true).unwrap();
    assert_close(&found, &expected.concat(), 5e-3);
}

#[test]
fn the_cache_goes_on_and_back() {
    let file = model(&LLAMA, true);
    let runtime = open("cache", &file);
    let model = runtime.model();
    let mut sequence = model.sequence();
    let ids = ids(300, LLAMA.vocab);
    let whole = model.forward(&mut sequence, &ids, true).unwrap();
    let row = |i: usize| &whole[i * LLAMA.vocab..(i + 1) * LLAMA.vocab];
    let close = |found: &[f32], i: usize| {
        assert_close(found, &row(i).iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), 1e-3);
    };
    for position in [250, 255, 256, 257, 7, 0] {
        sequence.rewind(position).unwrap();
        assert_eq!(sequence.position(), position);
        close(&model.forward(&mut sequence, &ids[position..position + 1], false).unwrap(), position);
        close(&model.forward(&mut sequence, &ids[position + 1..position + 20], false).unwrap(), position + 19);
        assert_eq!(sequence.position(), position + 20);
    }
}

/// A model with its matrices in a quantisation, which has this number in files, and with the floats that they then stand for.
fn quantise(plain: &File, dtype: GgmlDType, kind: u32) -> (File, File) {
    let mut quantised = plain.clone();
    let mut rounded = plain.clone();
    for ((old, new), rounded) in plain.tensors.iter().zip(&mut quantised.tensors).zip(&mut rounded.tensors) {
        if old.shape.len() == 2 {
            let values: Vec<f32> = old.bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            let tensor = candle_core::Tensor::from_vec(values, old.shape.as_slice(), &Device::Cpu).unwrap();
            let tensor = QTensor::quantize(&tensor, dtype).unwrap();
            new.bytes = tensor.data().unwrap().to_vec();
            new.kind = kind;
            let values = tensor.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            rounded.bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        }
    }
    (quantised, rounded)
}

#[test]
fn a_step_of_a_batch_is_the_same_to_the_last_bit() {
    // Rows of projections that do not fill whole tiles, and that do.
    for shape in
        [Shape { width: 96, hidden: 288, heads: 6, kv_heads: 3, ..LLAMA }, Shape { width: 64, hidden: 96, ..LLAMA }]
    {
        let (file, _) = quantise(&model(&shape, true), GgmlDType::Q8_0, 8);
        let runtime = open(&format!("same-{}", shape.width), &file);
        let model = runtime.model();
        let mut sequences = Vec::new();
        for i in 0..64 {
            let mut sequence = model.sequence();
            model.forward(&mut sequence, &ids(1 + i * 5, shape.vocab), false).unwrap();
            sequences.push(sequence);
        }
        let alone: Vec<Vec<f32>> = sequences
            .iter()
            .map(|sequence| {
                let mut copy = model.sequence();
                copy.copy_from(sequence, sequence.position()).unwrap();
                model.forward(&mut copy, &[9], false).unwrap()
            })
            .collect();
        for count in [1, 2, 3, 5, 8, 13, 32, 64] {
            let mut copies: Vec<_> = (0..count).map(|_| model.sequence()).collect();
            copies.iter_mut().zip(&sequences).for_each(|(copy, from)| copy.copy_from(from, from.position()).unwrap());
            let mut batch: Vec<(_, &[u32])> = copies.iter_mut().map(|copy| (copy, &[9][..])).collect();
            assert!(model.forward_batch(&mut batch).unwrap() == alone[..count].concat(), "{count} sequences");
        }
    }
}

#[test]
fn quantised_weights_give_nearly_the_same() {
    let narrow = Shape { width: 96, hidden: 288, heads: 6, kv_heads: 3, ..LLAMA };
    // Super-blocks take rows of a multiple of 256.
    let wide = Shape { width: 256, hidden: 512, heads: 8, kv_heads: 4, ..LLAMA };
    let table = [
        (&narrow, GgmlDType::Q4_1, 3),
        (&narrow, GgmlDType::Q5_0, 6),
        (&narrow, GgmlDType::Q8_0, 8),
        (&narrow, GgmlDType::F16, 1),
        (&wide, GgmlDType::Q4K, 12),
        (&wide, GgmlDType::Q5K, 13),
        (&wide, GgmlDType::Q6K, 14),
    ];
    for (shape, dtype, kind) in table {
        let (quantised, rounded) = quantise(&model(shape, true), dtype, kind);
        let runtime = open(&format!("quantised-{dtype:?}"), &quantised);
        let ids = ids(110, shape.vocab);
        let expected = reference(shape, &weights(&rounded), &ids).concat();
        // Few tokens and many take different ways.
        let (mut found, mut sequence) = (Vec::new(), runtime.model().sequence());
        for part in [&ids[..1], &ids[1..4], &ids[4..9], &ids[9..30], &ids[30..]] {
            found.extend(runtime.model().forward(&mut sequence, part, true).unwrap());
        }
        let error: f64 = found.iter().zip(&expected).map(|(f, e)| (f64::from(*f) - e).powi(2)).sum();
        let power: f64 = expected.iter().map(|e| e * e).sum();
        assert!((error / power).sqrt() < 0.1, "{dtype:?}: relative error {}", (error / power).sqrt());
    }
}

#[test]
fn misuse_is_an_error_and_changes_nothing() {
    let runtime = open("misuse", &model(&LLAMA, true));
    let model = runtime.model();
    let mut sequence = model.sequence();
    model.forward(&mut sequence, &[1, 2, 3], false).unwrap();
    assert!(matches!(model.forward(&mut sequence, &[], false), Err(Error::Empty)));
    assert!(matches!(model.forward(&mut sequence, &[5, 272], false), Err(Error::Token { id: 272, vocab_size: 272 })));
    assert!(matches!(
        model.forward(&mut sequence, &[1; 638], false),
        Err(Error::ContextLength { tokens: 641, context_length: 640 })
    ));
    assert!(matches!(sequence.rewind(4), Err(Error::Position { requested: 4, position: 3 })));
    assert_eq!(sequence.position(), 3);
    model.forward(&mut sequence, &[1; 637], false).unwrap();
    assert_eq!(sequence.position(), 640);
}

#[test]
fn sequences_of_a_batch_do_not_see_each_other() {
    for shape in [&LLAMA, &QWEN] {
        let file = model(shape, true);
        let runtime = open(&format!("batch-{}", shape.architecture), &file);
        let model = runtime.model();
        let weights = weights(&file);
        // Prompts of many lengths, the longer ones over several pages and passes, then a token each, then a mixture.
        let texts: Vec<Vec<u32>> =
            [3, 1, 300, 40, 127, 128, 129].iter().map(|&len| ids(len + 10, shape.vocab)[10..].to_vec()).collect();
        let mut sequences: Vec<_> = texts.iter().map(|_| model.sequence()).collect();
        let mut read: Vec<Vec<u32>> = vec![Vec::new(); texts.len()];
        let next = |text: &[u32], i: usize| -> Vec<Vec<u32>> {
            vec![text.to_vec(), vec![i as u32], if i.is_multiple_of(2) { vec![9; 20] } else { vec![7] }]
        };
        for step in 0..3 {
            let new: Vec<Vec<u32>> =
                texts.iter().enumerate().map(|(i, text)| next(text, i).swap_remove(step)).collect();
            let mut batch: Vec<_> = sequences.iter_mut().zip(&new).map(|(seq, ids)| (seq, ids.as_slice())).collect();
            let found = model.forward_batch(&mut batch).unwrap();
            for (((read, new), found), sequence) in
                read.iter_mut().zip(&new).zip(found.chunks(shape.vocab)).zip(&sequences)
            {
                read.extend(new);
                assert_eq!(sequence.position(), read.len());
                assert_close(found, reference(shape, &weights, read).last().unwrap(), 5e-3);
            }
        }
    }
}

#[test]
fn copies_share_a_beginning_and_nothing_else() {
    let runtime = open("copies", &model(&LLAMA, true));
    let model = runtime.model();
    let text = ids(300, LLAMA.vocab);
    let after = |read: &[u32]| model.forward(&mut model.sequence(), read, false).unwrap();
    let close = |found: Vec<f32>, read: &[u32]| {
        assert_close(&found, &after(read).iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), 1e-3);
    };
    let mut source = model.sequence();
    model.forward(&mut source, &text, false).unwrap();
    for length in [0, 1, 128, 200, 300] {
        let mut copy = model.sequence();
        model.forward(&mut copy, &[1, 2, 3], false).unwrap();
        copy.copy_from(&source, length).unwrap();
        assert_eq!(copy.position(), length);
        // Both write to the page that they share.
        close(model.forward(&mut copy, &[11], false).unwrap(), &[&text[..length], &[11]].concat());
        close(model.forward(&mut source, &[12], false).unwrap(), &[&text[..], &[12]].concat());
        close(model.forward(&mut copy, &[13], false).unwrap(), &[&text[..length], &[11, 13]].concat());
        source.rewind(300).unwrap();
    }
    let mut copy = model.sequence();
    copy.copy_from(&source, 150).unwrap();
    drop(source);
    close(model.forward(&mut copy, &[11], false).unwrap(), &[&text[..150], &[11]].concat());
    let short = model.sequence();
    assert!(matches!(copy.copy_from(&short, 1), Err(Error::Position { requested: 1, position: 0 })));
    assert_eq!(copy.position(), 151);
}

#[test]
fn a_batch_with_a_fault_changes_nothing() {
    let runtime = open("batch-misuse", &model(&LLAMA, true));
    let other = open("batch-misuse-other", &model(&LLAMA, true));
    let model = runtime.model();
    let (mut first, mut second, mut foreign) = (model.sequence(), model.sequence(), other.model().sequence());
    model.forward(&mut first, &[1, 2, 3], false).unwrap();
    let blamed = |result: Result<Vec<f32>, Error>| match result {
        Err(Error::Batch { index, source }) => (index, *source),
        other => panic!("no sequence is blamed: {other:?}"),
    };
    let found = blamed(model.forward_batch(&mut [(&mut first, &[4]), (&mut second, &[])]));
    assert!(matches!(found, (1, Error::Empty)));
    let found = blamed(model.forward_batch(&mut [(&mut first, &[4]), (&mut second, &[272])]));
    assert!(matches!(found, (1, Error::Token { id: 272, .. })));
    let found = blamed(model.forward_batch(&mut [(&mut first, &[4; 638]), (&mut second, &[1])]));
    assert!(matches!(found, (0, Error::ContextLength { tokens: 641, .. })));
    let found = blamed(model.forward_batch(&mut [(&mut first, &[4]), (&mut foreign, &[1])]));
    assert!(matches!(found, (1, Error::OtherModel)));
    assert!(matches!(first.copy_from(&foreign, 0), Err(Error::OtherModel)));
    assert_eq!((first.position(), second.position()), (3, 0));
    assert!(model.forward_batch(&mut []).unwrap().is_empty());
}
