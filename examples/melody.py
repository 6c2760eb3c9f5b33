"""Read the notes of a melody from its sound: short-time Fourier transforms, and an op for what NumPy has no words for.

A melody is made of decaying tones with overtones and noise. Windows of the sound go through `np.fft.rfft`; which tone
a spectrum has is found by summing over harmonics, all in NumPy and compiled. Telling notes apart, a walk with a
memory from window to window, is plain Python: declared as an op it is one node of the same plan, and a profile shows
it beside the others.

    python examples/melody.py
    python examples/melody.py --plot melody.png
"""

import argparse

import numpy as np

import pyop

RATE, WINDOW, HOP = 8000, 1024, 256
NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]
NOTES = np.arange(55, 80)  # MIDI numbers that are looked for
TUNE = [60, 62, 64, 65, 67, 67, 69, 69, 69, 69, 67]


def pitch(note):
    return 440.0 * 2.0 ** ((note - 69) / 12.0)


def harmonics():
    """Which bins the first four harmonics of each note are in, a note a row."""
    return np.round(pitch(NOTES)[:, None] * np.arange(1, 5) * WINDOW / RATE).astype(int)


BINS = harmonics()
BINS.flags.writeable = False


def spectrogram(sound):
    """The size of each frequency in each window, a window a row."""
    starts = np.arange(0, len(sound) - WINDOW + 1, HOP)
    windows = sound[starts[:, None] + np.arange(WINDOW)]
    return np.abs(np.fft.rfft(windows * np.hanning(WINDOW), axis=1))


@pyop.op("int64[n], float64[n] -> int64[_]")
def segments(best, loudness, *, least=3):
    """The notes in turn: a new one where another tone holds on, or the same is struck again."""
    found, run, last = [], 0, -1
    for k, (note, loud) in enumerate(zip(best.tolist(), loudness.tolist(), strict=True)):
        struck = k > 1 and loud > 1.5 * loudness[k - 2]
        run = run + 1 if note == last and not struck else 1
        last = note
        if run == least and loud > 20.0:
            found.append(note)
    return np.array(found, dtype=np.int64)


def transcribe(sound):
    """The notes of a sound, and its spectrogram."""
    power = spectrogram(sound)
    votes = np.sum(np.log1p(power[:, BINS]) * np.array([1.0, 0.8, 0.6, 0.4]), axis=2)
    return segments(NOTES[np.argmax(votes, axis=1)], np.max(power, axis=1)), power


fast_transcribe = pyop.compile(transcribe)


def play(tune=TUNE, seed=0):
    """The sound of a tune: half a second a note, with noise."""
    t = np.arange(RATE // 2) / RATE
    tones = [
        sum(np.sin(2 * np.pi * k * pitch(note) * t) / k**1.5 for k in range(1, 5)) * np.exp(-4 * t) for note in tune
    ]
    sound = np.concatenate(tones)
    return sound + 0.02 * np.random.default_rng(seed).standard_normal(len(sound))


def plot(path, power, notes) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    seconds = len(power) * HOP / RATE
    axes.imshow(
        20 * np.log10(power.T + 1e-3),
        origin="lower",
        aspect="auto",
        cmap="magma",
        vmin=-10,
        extent=(0, seconds, 0, RATE / 2),
    )
    axes.set(
        title="heard: " + " ".join(NAMES[note % 12] for note in notes), xlabel="seconds", ylabel="hertz", ylim=(0, 2000)
    )
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plot", metavar="FILE", help="save a picture there; needs matplotlib")
    options = parser.parse_args()
    sound = play()
    notes, power = fast_transcribe(sound)
    assert all(map(np.array_equal, (notes, power), transcribe(sound))), "the compiled function gives the same bits"
    right = "as it was played" if notes.tolist() == TUNE else f"but played was {TUNE}"
    print("heard:", " ".join(NAMES[note % 12] for note in notes), f"({right})")
    print(f"{power.shape[0]} windows of {WINDOW} samples, equal to the last bit")
    with pyop.profile() as profile:
        fast_transcribe(sound)
    print(profile)
    if options.plot:
        plot(options.plot, power, notes)


if __name__ == "__main__":
    main()
