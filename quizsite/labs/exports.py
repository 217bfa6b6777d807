"""A run's settings in the words of other engines, to copy, with a note where they mean something else there."""

import shlex
from dataclasses import dataclass

from generation import gguf_file, load_model, render_chat
from quizsite.labs.clauses import Setup


@dataclass(frozen=True)
class Export:
    """What to paste, and what differs."""

    engine: str
    text: str
    notes: list[str]


def exports(setup: Setup) -> list[Export]:
    """Return the same run for transformers and for llama.cpp; none for a model that no other engine has."""
    file = gguf_file(setup.model)
    return [_transformers(setup, file), _llama_cpp(setup, file)] if file else []


def _transformers(setup: Setup, file: str) -> Export:
    params = setup.params
    if setup.chat:
        ask = (
            f"messages = {setup.chat!r}\n"
            "inputs = tokenizer.apply_chat_template(\n"
            '    messages, add_generation_prompt=True, return_dict=True, return_tensors="pt"\n'
            ")"
        )
    else:
        ask = f'inputs = tokenizer({setup.prompt!r}, return_tensors="pt")'
    arguments = [f"max_new_tokens={params.max_new_tokens}", f"do_sample={not params.is_greedy}"]
    if not params.is_greedy:
        arguments += [f"temperature={params.temperature:g}", f"top_k={params.top_k}", f"top_p={params.top_p:g}"]
        arguments += [f"min_p={params.min_p:g}"] if params.min_p else []
    if params.repetition_penalty != 1:
        arguments.append(f"repetition_penalty={params.repetition_penalty:g}")
    if params.no_repeat_ngram_size:
        arguments.append(f"no_repeat_ngram_size={params.no_repeat_ngram_size}")
    if params.stop:
        arguments += [f"stop_strings={list(params.stop)!r}", "tokenizer=tokenizer"]
    if not params.use_kv_cache:
        arguments.append("use_cache=False")
    seed = [] if params.is_greedy else [f"torch.manual_seed({params.seed})"]
    lines = [
        "import torch",
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "",
        f'folder, file = ".", {file!r}',
        "tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)",
        "model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, dtype=torch.float32)",
        *seed,
        ask,
        "output = model.generate(",
        "    **inputs,",
        *(f"    {argument}," for argument in arguments),
        ")",
        'print(tokenizer.decode(output[0, inputs["input_ids"].shape[1]:], skip_special_tokens=True))',
    ]
    notes = [
        "To read a GGUF file it needs the packages gguf and accelerate.",
        "Its reader of GGUF files forgets that this tokenizer splits every digit.",
    ]
    if not params.is_greedy:
        notes.append("The seed gives other random numbers there, so a sampled text is another one.")
    if params.top_k:
        notes.append("Its top-k keeps every token that ties with the last one; here exactly k survive.")
    if params.temperature_last:
        notes.append("It always heats first and truncates afterwards; temperature last cannot be asked for.")
    if params.repetition_penalty != 1 and params.penalty_scope == "output":
        notes.append("Its repetition penalty counts the prompt, too.")
    if params.presence_penalty or params.frequency_penalty:
        notes.append("It has no presence and no frequency penalty: both are left out.")
    if params.stop:
        notes.append("The stop string stays in its output; here it is never shown.")
    return Export("transformers", "\n".join(lines), notes)


def _llama_cpp(setup: Setup, file: str) -> Export:
    params = setup.params
    prompt = render_chat(load_model(setup.model), setup.chat) if setup.chat else setup.prompt
    order = ["top_k", "top_p", "min_p"]
    order = ["penalties", *order, "temperature"] if params.temperature_last else ["penalties", "temperature", *order]
    temperature = 0 if params.is_greedy else params.temperature
    arguments = {
        "--model": file,
        "--prompt": prompt,
        "--n-predict": str(params.max_new_tokens),
        "--samplers": ";".join(order),
        "--temp": f"{temperature:g}",
        "--top-k": str(params.top_k),
        "--top-p": f"{params.top_p:g}",
        "--min-p": f"{params.min_p:g}",
        "--repeat-penalty": f"{params.repetition_penalty:g}",
        "--repeat-last-n": "-1",
        "--presence-penalty": f"{params.presence_penalty:g}",
        "--frequency-penalty": f"{params.frequency_penalty:g}",
        "--seed": str(params.seed % 2**32),
    }
    pairs = [f"{name} {shlex.quote(value)}" for name, value in arguments.items()]
    pairs += [f"--reverse-prompt {shlex.quote(text)}" for text in params.stop]
    text = " \\\n  ".join(["llama-cli --no-conversation --no-display-prompt", *pairs])
    notes = ["It computes with the quantised weights as they are in the file, so logits differ a little."]
    if not params.is_greedy:
        notes.append("The seed gives other random numbers there, so a sampled text is another one.")
    if not params.temperature_last and not params.is_greedy:
        notes.append("Its own order is truncation first, temperature last; the line of samplers says otherwise.")
    if params.presence_penalty or params.frequency_penalty:
        notes.append("Its presence and frequency penalty count the prompt, too; here the output alone.")
    if params.repetition_penalty != 1 and params.penalty_scope == "output":
        notes.append("Its repetition penalty counts the prompt, too.")
    if params.no_repeat_ngram_size:
        notes.append("It has no n-gram blocking: that setting is left out.")
    if not params.use_kv_cache:
        notes.append("It always uses its KV cache.")
    return Export("llama.cpp", text, notes)
