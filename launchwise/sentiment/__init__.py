"""The sentiment network: reviews in, two logits out (Dong, Nan and Deng 2024)."""
