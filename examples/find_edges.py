"""Find the edges in the frames of a film, the pipeline of array operations compiled.

Each frame is made linear in brightness, smoothed, differentiated in both directions, and what is steep is kept, its
brightness telling how steep: some forty NumPy calls on arrays that do not fit in the cache, whose time goes into
reading and writing temporary arrays. A plan goes through them block by block.

    python examples/find_edges.py
"""

import time

import numpy as np

import pyop

HEIGHT, WIDTH = 480, 640


def smooth(image):
    """Binomial filter of 3 by 3 pixels; two pixels are lost in each direction."""
    columns = image[:, :-2] + image[:, 2:]
    columns += 2.0 * image[:, 1:-1]
    rows = columns[:-2] + columns[2:]
    rows += 2.0 * columns[1:-1]
    rows /= 16.0
    return rows


def edges(frame, threshold=0.1):
    """How steep the brightness of each pixel is where it is steep, zero elsewhere; and the number of such pixels."""
    grey = 0.299 * frame[..., 0] + 0.587 * frame[..., 1] + 0.114 * frame[..., 2]
    light = grey * grey
    soft = smooth(light)
    across = soft[1:-1, 2:] - soft[1:-1, :-2]
    down = soft[2:, 1:-1] - soft[:-2, 1:-1]
    steep = np.sqrt(across * across + down * down)
    steep /= steep.max()
    steep *= steep > threshold
    return steep, np.count_nonzero(steep)


compiled_edges = pyop.compile(edges)


def film(frames=4, height=HEIGHT, width=WIDTH):
    """Moving discs on a bright gradient."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    background = np.stack([x / width, y / height, 0.5 + 0 * x], axis=-1)
    for k in range(frames):
        image = background.copy()
        for c in range(3):
            inside = (x - width * (0.2 + 0.2 * c) - 20 * k) ** 2 + (y - height * 0.5) ** 2 < (0.15 * height) ** 2
            image[inside, c] = 1.0
        yield image.astype(np.float32)


def main() -> None:
    shots = list(film())
    compiled_edges(shots[0])  # traced and compiled here
    spent = {"NumPy": 0.0, "compiled": 0.0}
    for shot in shots:
        results = {}
        for name, function in (("NumPy", edges), ("compiled", compiled_edges)):
            begin = time.perf_counter()
            results[name] = function(shot)
            spent[name] += time.perf_counter() - begin
        (plain, count), (fast, same_count) = results.values()
        assert np.array_equal(plain, fast), "the compiled function gives the same bits"
        assert count == same_count
    print(f"{len(shots)} frames of {WIDTH} by {HEIGHT}; {count} pixels of the last one are edges")
    print(", ".join(f"{name} {1000 * t / len(shots):.1f} ms a frame" for name, t in spent.items()))


if __name__ == "__main__":
    main()
