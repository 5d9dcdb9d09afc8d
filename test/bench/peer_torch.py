"""Training throughput of small language models in PyTorch on a CPU: the peer that quipu is measured against.

One process measures one cell (a model, a width, a batch) and prints one line of JSON. The environment decides which
BLAS and which kernels run; peer_torch.sh sets it. Written for the PyTorch 1.13 of Debian 12, which has no fused
attention on CPUs.
"""
import argparse
import ctypes
import json
import math
import os
import resource
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    """Causal softmax attention with a fused projection: a product, a softmax, a product."""

    def __init__(self, options):
        super().__init__()
        self.heads = options.heads
        self.qkv = nn.Linear(options.dim, 3 * options.dim)
        self.out = nn.Linear(options.dim, options.dim)
        mask = torch.full((options.length, options.length), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def split(self, x):
        """[B,T,3D] -> q, k, v, each [B,H,T,K]."""
        batch, length, width = x.shape
        x = x.view(batch, length, 3, self.heads, width // (3 * self.heads))
        return x.permute(2, 0, 3, 1, 4).unbind(0)

    def merge(self, y):
        """[B,H,T,V] -> [B,T,D]."""
        return y.transpose(1, 2).flatten(2)

    def forward(self, x):
        q, k, v = self.split(self.qkv(x))
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        return self.out(self.merge(scores.add_(self.mask).softmax(-1) @ v))


class LinearAttention(Attention):
    """phi(q)^T sum phi(k) v^T / phi(q)^T sum phi(k) with phi = elu + 1, in chunks: products only, no time loop."""

    def __init__(self, options):
        super().__init__(options)
        self.chunk = options.chunk
        self.register_buffer("mask", torch.ones(options.chunk, options.chunk).tril(), persistent=False)

    def forward(self, x):
        q, k, v = self.split(self.qkv(x))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        normaliser = (q * k.cumsum(2)).sum(-1, keepdim=True)
        q, k, v = (t.unflatten(2, (-1, self.chunk)) for t in (q, k, v))  # [B,H,chunks,C,K]
        inside = (q @ k.transpose(-2, -1) * self.mask) @ v
        states = k.transpose(-2, -1) @ v
        before = states.cumsum(2) - states
        return self.out(self.merge((inside + q @ before).flatten(2, 3) / (normaliser + 1e-6)))


class GatedSlotAttention(nn.Module):
    """Gated Slot Attention (arXiv:2409.07146) as its recurrence reads: one step of a Python loop per token.
    A first pass collects the slot scores, a second one reads the slots' values."""

    def __init__(self, options):
        super().__init__()
        self.heads, self.slots, self.loop = options.heads, options.slots, options.loop
        self.q, self.k, self.v, self.out = (nn.Linear(options.dim, options.dim, bias=False) for _ in range(4))
        self.forget = nn.Linear(options.dim, options.heads * options.slots, bias=False)
        self.norm = nn.Parameter(torch.ones(options.dim))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B,H,T,K]

    def steps(self, x):
        """The [B,H,K] of every token: views made one by one, or all at once (whose gradient costs far less)."""
        return x.unbind(2) if self.loop == "unbind" else [x[:, :, t] for t in range(x.shape[2])]

    def scan(self, q, k, v, k_decay, v_decay):
        """S_t = decay_t S_{t-1} + k_t v_t^T and y_t = q_t S_t; the decay is on the index of k, or of v."""
        state = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1])
        decays = self.steps(v_decay if k_decay is None else k_decay)
        out = []
        for q_t, k_t, v_t, decay in zip(self.steps(q), self.steps(k), self.steps(v), decays):
            decay = decay.unsqueeze(-2 if k_decay is None else -1)
            state = state * decay + k_t.unsqueeze(-1) * v_t.unsqueeze(-2)
            out.append((q_t.unsqueeze(-2) @ state).squeeze(-2))
        return torch.stack(out, 2)

    def forward(self, x):
        q, k, v = (self.split(F.silu(layer(x))) for layer in (self.q, self.k, self.v))
        log_decay = self.split(F.logsigmoid(self.forget(x)) / 8)
        decay, write = log_decay.exp(), -torch.expm1(log_decay)
        scores = self.scan(q, k, write, None, decay).softmax(-1)
        y = F.silu(self.scan(scores, write, v, decay, None).transpose(1, 2).flatten(2))
        return self.out(y * (y.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.norm)


class GatedLinearAttention(GatedSlotAttention):
    """Gated Linear Attention (arXiv:2312.06635) as its recurrence reads, with its low-rank decay and output gate."""

    def __init__(self, options):
        nn.Module.__init__(self)
        self.heads, self.loop = options.heads, options.loop
        half = options.dim // 2
        self.q, self.k = (nn.Linear(options.dim, half, bias=False) for _ in range(2))
        self.v, self.gate, self.out = (nn.Linear(options.dim, options.dim, bias=False) for _ in range(3))
        self.forget = nn.Sequential(nn.Linear(options.dim, 16, bias=False), nn.Linear(16, half))
        self.norm = nn.Parameter(torch.ones(options.dim // options.heads))

    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        decay = self.split(F.logsigmoid(self.forget(x)) / 16).exp()
        y = self.scan(q * q.shape[-1] ** -0.5, k, v, decay, None).transpose(1, 2)
        y = y * (y.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.norm
        return self.out(y.flatten(2) * F.silu(self.gate(x)))


class Rwkv4(nn.Module):
    """RWKV-4's time mixing (arXiv:2305.13048) with its recurrence as a loop over time, in the stable form."""

    def __init__(self, options):
        super().__init__()
        self.loop = options.loop
        self.mix = nn.Parameter(torch.rand(3, options.dim))
        self.decay, self.first = nn.Parameter(torch.randn(options.dim)), nn.Parameter(torch.zeros(options.dim))
        self.k, self.v, self.r, self.out = (nn.Linear(options.dim, options.dim, bias=False) for _ in range(4))

    def steps(self, x):
        return x.unbind(1) if self.loop == "unbind" else [x[:, t] for t in range(x.shape[1])]

    def wkv(self, k, v):
        decay, first = -self.decay.exp(), self.first
        a, b, top = torch.zeros_like(k[:, 0]), torch.zeros_like(k[:, 0]), torch.full_like(k[:, 0], -1e38)
        out = []
        for k_t, v_t in zip(self.steps(k), self.steps(v)):
            high = torch.maximum(top, first + k_t)
            old, new = (top - high).exp(), (first + k_t - high).exp()
            out.append((old * a + new * v_t) / (old * b + new))
            high = torch.maximum(top + decay, k_t)
            old, new = (top + decay - high).exp(), (k_t - high).exp()
            a, b, top = old * a + new * v_t, old * b + new, high
        return torch.stack(out, 1)

    def forward(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        xk, xv, xr = (x * m + before * (1 - m) for m in self.mix)
        return self.out(torch.sigmoid(self.r(xr)) * self.wkv(self.k(xk), self.v(xv)))


class Mlp(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.up, self.down = nn.Linear(options.dim, 4 * options.dim), nn.Linear(4 * options.dim, options.dim)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class RwkvChannel(nn.Module):
    """RWKV-4's channel mixing."""

    def __init__(self, options):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(2, options.dim))
        self.up, self.down = (nn.Linear(*shape, bias=False) for shape in
                              [(options.dim, 4 * options.dim), (4 * options.dim, options.dim)])
        self.gate = nn.Linear(options.dim, options.dim, bias=False)

    def forward(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        xk, xr = (x * m + before * (1 - m) for m in self.mix)
        return torch.sigmoid(self.gate(xr)) * self.down(F.relu(self.up(xk)).square())


MIXERS = {"gpt": Attention, "linear_attention": LinearAttention, "gsa": GatedSlotAttention,
          "gla": GatedLinearAttention, "rwkv4": Rwkv4}


class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(options.dim), nn.LayerNorm(options.dim)
        self.mixer = MIXERS[options.model](options)
        self.channels = (RwkvChannel if options.model == "rwkv4" else Mlp)(options)

    def forward(self, x):
        x = x + self.mixer(self.norm1(x))
        return x + self.channels(self.norm2(x))


class LanguageModel(nn.Module):
    """GPT-2's frame: learned positions, pre-norm blocks, a last norm, and a head tied to the embedding."""

    def __init__(self, options):
        super().__init__()
        self.tokens = nn.Embedding(options.vocab, options.dim)
        self.positions = nn.Parameter(torch.empty(options.length, options.dim))
        self.blocks = nn.Sequential(*(Block(options) for _ in range(options.layers)))
        self.norm = nn.LayerNorm(options.dim)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x, targets):
        hidden = self.norm(self.blocks(self.tokens(x) + self.positions))
        logits = hidden @ self.tokens.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_optimizer(model):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-4, betas=(0.9, 0.95))


def measure(model, options):
    """Seconds of each measured step, and the first and last loss. The same random batch each time."""
    optimizer = make_optimizer(model)
    batch = torch.randint(options.vocab, (options.batch, options.length + 1))
    seconds, losses = [], []
    started = None
    for step in range(options.warmup + options.steps):
        if step == options.warmup:
            started = time.perf_counter()
        if len(seconds) >= 2 and time.perf_counter() - started > options.seconds:
            break
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bf16):
            loss = model(batch[:, :-1], batch[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step >= options.warmup:
            seconds.append(time.perf_counter() - begin)
    return seconds, losses


def blas_in_use():
    """What the process has really mapped, and what the library says of itself (parallel: 1 pthread, 2 OpenMP)."""
    with open("/proc/self/maps") as maps:
        files = sorted({line.split()[-1] for line in maps if ".so" in line and "blas" in os.path.basename(line)})
    info = {"files": files}
    for path in files:
        if "openblas" in os.path.basename(path):
            library = ctypes.CDLL(path)
            library.openblas_get_corename.restype = library.openblas_get_config.restype = ctypes.c_char_p
            info["core"] = library.openblas_get_corename().decode()
            info["config"] = library.openblas_get_config().decode().strip()
            info["parallel"] = {0: "none", 1: "pthread", 2: "openmp"}[library.openblas_get_parallel()]
            info["threads"] = library.openblas_get_num_threads()
    return info


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MIXERS, default="gpt")
    for name, value, meaning in [
        ("dim", 256, "width"), ("layers", 4, "blocks"), ("heads", 4, "heads"), ("slots", 64, "slots of gsa"),
        ("chunk", 64, "chunk of linear_attention"), ("vocab", 8192, "vocabulary"), ("batch", 8, "sequences a step"),
        ("length", 512, "tokens a sequence"), ("threads", 2, "threads"), ("steps", 20, "measured steps at most"),
        ("warmup", 2, "steps before them"), ("seconds", 30, "stop measuring after so long (two steps at least)"),
    ]:
        parser.add_argument("--" + name, type=int, default=value, help=f"{meaning} (default {value})")
    parser.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--loop", choices=["slices", "unbind"], default="unbind", help="how gsa, gla and rwkv4 take their time steps")
    parser.add_argument("--variant", default="", help="a word for the environment, copied to the output")
    parser.add_argument("--require-blas", choices=["pthread", "openmp"], help="fail where another OpenBLAS is loaded")
    return parser.parse_args()


def main():
    options = parse_options()
    if options.steps < 1 or options.dim % options.heads or options.length % options.chunk:
        sys.exit("peer_torch: give at least one step, heads that divide the width, a chunk that divides the length")
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    model = LanguageModel(options)
    torch.randn(64, 64) @ torch.randn(64, 64)  # loads the BLAS
    blas = blas_in_use()
    if options.require_blas and blas.get("parallel") != options.require_blas:
        sys.exit(f"peer_torch: {options.require_blas} OpenBLAS wanted, {blas} loaded; see LD_LIBRARY_PATH")
    seconds, losses = measure(model, options)
    tokens = options.batch * options.length
    ordered = sorted(seconds)
    capability = [line.split(":")[1].strip() for line in torch.__config__.show().splitlines() if "capability" in line]
    print(json.dumps({
        "model": options.model, "bf16": options.bf16, "variant": options.variant, "dim": options.dim, "layers": options.layers,
        "heads": options.heads, "vocab": options.vocab, "batch": options.batch, "length": options.length,
        "loop": options.loop if options.model in ("gsa", "gla", "rwkv4") else None,
        "parameters": sum(p.numel() for p in model.parameters()), "threads": torch.get_num_threads(),
        "steps": len(seconds), "tokens_per_s_best": round(tokens / ordered[0], 1),
        "tokens_per_s_median": round(tokens / ordered[len(ordered) // 2], 1),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "loss_first": losses[0], "loss_last": losses[-1], "torch": torch.__version__,
        "capability": capability[0] if capability else None, "blas": blas,
    }))


if __name__ == "__main__":
    main()
