"""Completions of a batch become rewards in their order."""

from concurrent.futures import Future

import pytest

from harness.adapters.answers import candidate
from harness.adapters.trl import reward_function
from harness.errors import UsageError
from harness.records import Status
from tests.rewards.test_rewards import failed, passed

ANSWER = """First try:
```python
class ModelNew: first
```
Better:
```python
class ModelNew: {}
```
```
print()
```
"""


class Told:
    """An evaluator that has its records from the test, by what the source ends with."""

    def __init__(self, **found):
        self.found, self.seen = found, []

    def submit(self, problem, source, deadline_s=None):
        self.seen.append((problem, deadline_s))
        future = Future()
        future.set_result(self.found[source.split()[-1]])
        return future


def test_each_completion_has_its_reward_and_none_is_passed_on():
    evaluator = Told(fast=passed(2.0), wrong=failed(Status.INCORRECT), lost=failed(Status.HARNESS_ERROR))
    function = reward_function(evaluator, deadline_s=9.0)
    completions = [ANSWER.format(word) for word in ("fast", "wrong", "lost")]
    conversation = [{"role": "assistant", "content": ANSWER.format("fast")}]
    found = function(
        prompts=["p"] * 5,
        completions=[*completions, "I give up", conversation],
        problem=["a/1", "a/2", "a/3", "a/4", "a/5"],
        trainer_state=None,
    )
    assert found == [2.0, 0.0, None, 0.0, 2.0]
    assert evaluator.seen == [("a/1", 9.0), ("a/2", 9.0), ("a/3", 9.0), ("a/5", 9.0)]
    assert function.__name__ == "assay_speedup"


def test_content_may_come_in_parts():
    parts = [{"type": "text", "text": "Here:"}, {"type": "image", "text": "none"}, {"text": f"\n{ANSWER.format('it')}"}]
    assert candidate([{"role": "assistant", "content": parts}]) == candidate(ANSWER.format("it")) != ""


@pytest.mark.parametrize(
    "completion", ["", None, [], [{"role": "assistant", "content": None}], "```python\nclass ModelNew"]
)
def test_a_completion_without_a_whole_block_has_no_candidate(completion):
    assert candidate(completion) == ""


@pytest.mark.parametrize(
    ("completion", "sentence"),
    [
        (5, "a completion is an int"),
        (["x"], "the last message of a completion is a str"),
        ([{"content": 5}], "the content of a message is an int"),
        ([{"content": 0}], "the content of a message is an int"),
        ([{"content": {"text": "x"}}], "the content of a message is a dict"),
        ([{"content": ["x"]}], "a part of a message's content is a str"),
        ([{"content": [{"text": 5}]}], "the text of a message's part is an int"),
    ],
)
def test_what_is_no_completion_is_a_sentence_and_nothing_is_evaluated(completion, sentence):
    evaluator = Told(fast=passed(2.0))
    with pytest.raises(UsageError, match=sentence):
        candidate(completion)
    with pytest.raises(UsageError, match=sentence):
        reward_function(evaluator)(["p"] * 2, [ANSWER.format("fast"), completion], problem=["a/1", "a/2"])
    assert evaluator.seen == []


def test_a_column_that_the_dataset_lacks_is_a_sentence():
    function = reward_function(Told(), problem_column="task")
    with pytest.raises(UsageError, match="no column 'task' with the problems; did you mean 'tasks'"):
        function(["p"], [ANSWER], tasks=["a/1"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_trl_s_own_trainer_takes_the_rewards(tmp_path):
    """GRPOTrainer of the real package, with a model of two small layers and a tokenizer made here."""
    trl = pytest.importorskip("trl", reason="TRL is not installed: pip install 'kernel-assay[trl]'")
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = {word: number for number, word in enumerate(["<pad>", "<eos>", "<unk>", "write", "a", "kernel"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(words), **sizes))
    evaluator = Told(fast=passed(2.0), wrong=failed(Status.INCORRECT), lost=failed(Status.HARNESS_ERROR))
    rows = [{"prompt": "write a kernel", "problem": f"toy/{number}"} for number in range(4)]
    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=2,
        max_completion_length=4,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    )
    trainer = trl.GRPOTrainer(
        model=model,
        args=arguments,
        processing_class=tokens,
        train_dataset=Dataset.from_list(rows),
        reward_funcs=reward_function(evaluator, deadline_s=9.0),
    )
    # What such a model says has no candidate.
    trainer.train()
    (logged,) = (line for line in trainer.state.log_history if "rewards/assay_speedup/mean" in line)
    assert logged["rewards/assay_speedup/mean"] == 0.0
    assert evaluator.seen == []
    completions = [ANSWER.format(word) for word in ("fast", "wrong", "lost")]
    inputs = [{"prompt": "p", "problem": f"toy/{number}"} for number in range(3)]
    rewards = trainer._calculate_rewards(inputs, ["p"] * 3, completions, [[0]] * 3)
    assert [str(value) for value in rewards[:, 0].tolist()] == ["2.0", "0.0", "nan"]
    assert evaluator.seen == [(f"toy/{number}", 9.0) for number in range(3)]
