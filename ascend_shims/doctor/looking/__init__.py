"""Looking: files, other processes, and children that try what must not be tried here.

Nothing here says what is good or bad, and nothing imports vLLM or torch.
"""
