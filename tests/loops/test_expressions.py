"""Expressions of numbers that a call computes, in loops and outside: values, types and exceptions are NumPy's."""

import linecache
import math
import numbers
import operator

import numpy as np
import pytest

import pyop

pytestmark = pytest.mark.filterwarnings("ignore")

EXPRESSIONS = """
    isinstance(k, numbers.Integral)
    np.isscalar(k)
    np.issubdtype(type(k), np.integer)
    operator.index(k)
    k.real
    k.imag
    k.numerator
    k.bit_length()
    k.bit_count()
    k in range(5)
    k in [1,2]
    k in (1,2,3)
    k in {1,2}
    slice(k)
    x[k:k+2]
    pow(k,2,5)
    pow(k,2)
    ~k
    +k
    not k
    k and 5
    k or 5
    sum(range(k))
    math.gcd(k,4)
    math.factorial(abs(k))
    math.comb(5,abs(k))
    math.isqrt(abs(k))
    bin(k)
    hex(k)
    '{}'.format(k)
    complex(k,k)
    np.array(k)
    np.int64(k)
    np.full(3,k)
    np.asarray([k])
    x.dtype.type(k)
    np.power(k,2)
    np.power(k,-1)
    k**-1
    k**0
    2**k
    x**k
    k**0.5
    k/0
    k//0
    k%0
    k%-3
    k//-3
    -7//k
    7%k
    1/k
    1.0/k
    x/k
    5//k
    divmod(k,-3)
    divmod(7,k)
    k*x[0]
    k*0.5
    k+True
    k-1j
    k==1.0
    k<x[0]
    max(k,x[0])
    min(k,0)
    max(k,1.5)
    abs(k)*1.5
    round(k)
    round(k,1)
    round(k,-1)
    int(k)
    float(k)
    bool(k)
    str(k)
    [k]*2
    (k,)*2
    {k:1}
    {'a':k}
    k<<1
    k>>1
    1<<abs(k)
    8>>abs(k)
    k&5
    k|5
    k^5
    k<3<5
    0<=k<3
    k if k>1 else -k
    [1,2,3,4][k%4]
    x[k%4]
    x[-k%4]
    np.zeros(abs(k))
    np.arange(k)
    np.arange(k,k+3)
    np.linspace(0,1,abs(k)+2)
    np.eye(abs(k)+1)
    np.roll(x,k)
    np.sum([k,1])
    np.mean([k,k])
    np.maximum(k,2)
    np.add(k,k)
    np.multiply(x,k)
    np.sqrt(abs(k))
    np.sign(k)
    np.clip(k,0,2)
    np.where(k>1,x,-x)
    np.where(x>0,k,0)
    math.floor(k/2)
    math.sqrt(abs(k))
    math.exp(k)
    math.log(k)
    math.pow(k,2)
    math.copysign(1,k)
    math.fmod(k,2)
    math.hypot(k,1)
    x[:k]
    x[k:]
    x[::k]
    x[::-1][k%3]
    x.reshape(-1,abs(k)+1) if 4%(abs(k)+1)==0 else 0
    np.tile(x,abs(k))
    np.repeat(x,abs(k))
    x.astype('f')*k
    x.astype('i')*k
    (x>0)*k
    np.float32(2)*k
    np.int8(2)*k
    np.int8(100)+k
    np.uint8(1)-k
    k-np.uint8(1)
    k*np.array([1],'i1')
    np.array([1],'u1')+k
    np.int64(2)**k
    np.float64(2)**k
    k**np.int64(2)
    f'{k:>4}'
    len('a'*k)
    list(range(k))
    sorted([3,k,1])
    any([k,0])
    all([k,1])
    sum([k,k])
    sum([x[0],k])
    k is None
    k != k
    k==k
    hash(k)==hash(k)
    isinstance(k,bool)
    k.conjugate()
    k.__index__()
    k.__add__(1)
    float.fromhex('1')*k
    int('3')+k
    k.as_integer_ratio()
    np.dot(x,k)
    np.isfinite(k)
    np.abs(k)
    np.dtype(type(k))
    np.result_type(k, np.float32)
    np.promote_types('f','d').type(k)
    np.minimum(x, k)
    np.hypot(k, 1)
    np.logical_and(k, x)
    np.bitwise_and(k, 3)
    np.left_shift(k, 1)
    np.floor_divide(k, 2)
    np.remainder(k, 3)
    np.divide(1, k)
    np.true_divide(k, 2)
    np.reciprocal(x[0]*0+k+10)
    np.equal(k, 1)
    np.array([k, 2.5])
    np.array([[k, 1], [2, k]])
    np.stack([x, x*k])
    np.insert(x, k%4, k)
    np.append(x, k)
    np.interp(k, [0,5],[1,2])
    np.polyval([1,k], x)
    np.histogram(x, bins=abs(k)+1)[0]
    np.cumsum([k,1])
    np.outer(x,[k])
    np.full_like(x, k)
    np.searchsorted(x, k)
    np.take(x, k%4)
    x.sum()+k
    x.take([k%4])
    x.item(k%4)
    x.tolist()[k%4]
    np.bincount([int(abs(k)), 1])
    np.partition(x, abs(k)%4)
    np.sort(x)[k%4]
    np.argsort(x)[k%4]+k
""".strip().split("\n    ")
MAKES = ("int({})", "float({})")
OTHERS = (
    "bool({} > 1)",
    "round({})",
    "{}.item()",
    "complex({})",
    "len(x[x > {}])",
    "int({}) * 2 + 1",
    "min(float({}), 2.5)",
)
LOOP = """
def f(x):
    r = None
    t = 0.0
    for i in range(12):
        k = MAKE
        t = t + x[i % 4]
        r = EXPRESSION
    return r, t
"""
CALL = """
def f(x):
    k = MAKE
    return EXPRESSION
"""


def made(text, make, expression):
    element = "x[i % 4]" if text is LOOP else "x[0]"
    source = text.replace("MAKE", make.format(element)).replace("EXPRESSION", expression)
    file = f"<{make} {expression} {text is LOOP}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"np": np, "math": math, "operator": operator, "numbers": numbers}
    exec(compile(source, file, "exec"), space)
    return space["f"]


def told(f, x):
    try:
        return repr(f(x))
    except Exception as error:
        return type(error).__name__


def check(text, make, expression):
    f = made(text, make, expression)
    compiled = pyop.compile(f)
    for first in (2.0, -3.0, 0.0, 1.0, 3.0):
        x = np.array([first, 1.0, 2.0, first])
        wanted = told(f, x.copy())
        if text is LOOP and wanted.endswith("Error"):
            continue  # what nobody reads is not computed: an iteration before the last one raises
        assert told(compiled, x) == wanted, (make, expression, first)


@pytest.mark.parametrize("text", [LOOP, CALL], ids=["loop", "call"])
@pytest.mark.parametrize("make", MAKES)
def test_numbers(make, text):
    for expression in EXPRESSIONS:
        check(text, make, expression)


@pytest.mark.campaign
@pytest.mark.parametrize("text", [LOOP, CALL], ids=["loop", "call"])
@pytest.mark.parametrize("make", OTHERS)
def test_other_numbers(make, text):
    for expression in EXPRESSIONS:
        check(text, make, expression)
