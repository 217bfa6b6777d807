"""The cache: what is put, counted and forgotten."""

import pytest

from generation import KVCache, load_model


def test_a_truncated_cache_goes_on_as_if_the_rest_had_never_been():
    model = load_model("sky")
    kv_cache = model.new_cache()
    model.forward([0, 1, 2, 3, 4], kv_cache)

    kv_cache.truncate(2)
    logits = model.forward([2], kv_cache)

    assert logits.tolist() == pytest.approx(model.forward([0, 1, 2]).tolist(), abs=1e-12)


def test_bytes_are_two_arrays_of_layers_times_width_for_each_position():
    kv_cache = KVCache(n_layer=2, n_kv_head=1, head_dim=8, context_length=256)
    kv_cache.advance(3)

    assert kv_cache.nbytes == 2 * 2 * 8 * 8 * 3


def test_truncating_beyond_what_there_is_is_refused():
    with pytest.raises(ValueError, match="length must be between 0 and 0, got 1"):
        KVCache(1, 1, 1, 10).truncate(1)
