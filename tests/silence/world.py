"""A world of things that a function may read beside its arguments, expressions that read it, statements that change it.

`test_world_changed.py` puts functions and calls together from them.
"""

from __future__ import annotations

__all__ = ["CHANGES", "READS", "RELATED", "WORLD"]

# What all of it is made of. Nothing here is shared: each run executes it anew.
WORLD = r"""
import abc, array, bisect, collections, collections.abc, contextvars, copy, dataclasses, enum, functools, heapq, inspect
import json, math, operator, os, re, string, sys, threading, types, typing, weakref
import numpy as np
G = 1.0
GN = None
class Base:
    c = 1.0
    n = None
    lst = [1.0, 2.0]
    dct = {"k": 1.0}
    @property
    def prop(self): return self.v * 2
    @classmethod
    def cm(cls): return cls.c
    @staticmethod
    def sm(): return G
    def meth(self): return self.v + self.c
    def __len__(self): return len(self.items)
    def __getitem__(self, k): return self.items[k]
    def __contains__(self, k): return k in self.items
    def __iter__(self): return iter(self.items)
    def __bool__(self): return bool(self.flag)
    def __call__(self, k): return k * self.v
    def __enter__(self): return self.v
    def __exit__(self, *a): return None
    def __eq__(self, o): return self.v == o
    def __hash__(self): return 1
    def __add__(self, o): return o + self.v
    def __float__(self): return float(self.v)
    def __index__(self): return self.idx
class Derived(Base):
    d = 2.0
    dn = None
class Desc:
    def __init__(self): self.val = 1.0
    def __get__(self, o, t=None): return self.val
class WithDesc:
    z = Desc()
    @functools.cached_property
    def cp(self): return G
class Dyn:
    def __init__(self): self.store = {"q": 1.0}
    def __getattr__(self, name):
        try: return self.__dict__["store"][name]
        except KeyError: raise AttributeError(name)
class Sl:
    __slots__ = ("a", "b")
    def __init__(self): self.a = 1.0; self.b = None
@dataclasses.dataclass
class DC:
    p: float = 1.0
    q: object = None
    r: list = dataclasses.field(default_factory=lambda: [1.0, [2.0]])
class Meta(type):
    m = 1.0
    mn = None
class WithMeta(metaclass=Meta): pass
class LogDict(dict):
    def __missing__(self, k): return self.default
o = Derived(); o.v = 1.0; o.items = [1.0, 2.0]; o.flag = True; o.idx = 1; o.opt = None
wd = WithDesc(); dy = Dyn(); sl = Sl(); dc = DC(); wm = WithMeta()
ld = LogDict(a=1.0); ld.default = 5.0
L = [1.0, [2.0, None], (3.0, [4.0])]
D = {"a": 1.0, "b": {"c": 2.0, "n": None}, 3: 3.0, (1, 2): 4.0}
T = ([1.0], {"x": 1.0})
S = {1.0, 2.0}
DQ = collections.deque([1.0, 2.0])
DD = collections.defaultdict(lambda: 9.0, {"a": 1.0})
CM = collections.ChainMap({"a": 1.0}, {"b": 2.0})
OD = collections.OrderedDict(a=1.0, b=2.0)
NT = collections.namedtuple("NT", "x y")([1.0], 2.0)
NS = types.SimpleNamespace(a=1.0, n=None, deep=types.SimpleNamespace(v=1.0))
A = np.array([1.0, 2.0, 3.0])
AO = np.array([1.0, None, [2.0]], dtype=object)
BA = bytearray(b"\x01\x02")
CV = contextvars.ContextVar("cv", default=1.0)
MOD = types.ModuleType("somemod"); MOD.val = 1.0; MOD.none = None; MOD.sub = types.SimpleNamespace(w=1.0)
def helper(): return G + 1
def helper2(k=1.0, *, kk=None): return k if kk is None else k + kk
def counter(): return 1.0
helper.attr = 1.0
PT = functools.partial(lambda a, b=1.0: a + b, 2.0)
PTL = functools.partial(lambda a, b=1.0: a[0] + b, [2.0])
BM = o.meth
AG = operator.attrgetter("v"); IG = operator.itemgetter("a")
WR = weakref.ref(o)
def mk():
    cell = 1.0; celln = None; clist = [1.0]
    def get(): return cell if celln is None else cell + celln + clist[0]
    def put(a, b): nonlocal cell, celln; cell = a; celln = b; clist[0] = a
    return get, put
getc, putc = mk()

class TN(typing.NamedTuple):
    a: object = 1.0
    b: object = None
tn = TN([1.0])
class E(enum.Enum):
    A = 1.0
    B = [2.0]
class SD:
    __slots__ = ("x", "__dict__")
    def __init__(self): self.x = 1.0; self.y = 2.0
class SD2(SD):
    __slots__ = ("w",)
    def __init__(self): super().__init__(); self.w = [3.0]
sd = SD2()
@dataclasses.dataclass(slots=True)
class DS:
    p: float = 1.0
    q: object = None
ds = DS()
@dataclasses.dataclass(frozen=True)
class DF:
    p: object = 1.0
    r: list = dataclasses.field(default_factory=lambda: [1.0])
df = DF()
UD = collections.UserDict({"a": 1.0}); UL = collections.UserList([1.0, 2.0])
AR = array.array("d", [1.0, 2.0])
CNT = collections.Counter({"a": 1})
TL = threading.local(); TL.v = 1.0
@functools.singledispatch
def sdp(k): return 1.0
sdp.register(str, lambda k: 2.0)
@functools.lru_cache
def cached(k): return k + G
def deco(f):
    @functools.wraps(f)
    def w(*a): return f(*a) + w.offset
    w.offset = 1.0
    return w
@deco
def decorated(k): return k
class Prop:
    def __init__(self): self._v = 1.0; self.cb = lambda k: k; self.children = {}
    @property
    def v(self): return self._v
    @v.setter
    def v(self, k): self._v = k
    def walk(self): return sum(c._v for c in self.children.values()) + self._v
pr = Prop(); pr.children["x"] = Prop(); pr.children["y"] = Prop()
class Node:
    def __init__(self, v, nxt=None): self.v = v; self.nxt = nxt
nd = Node(1.0, Node(2.0, Node(3.0)))
cyc = Node(1.0); cyc.nxt = cyc
class ABCd(abc.ABC):
    @abc.abstractmethod
    def go(self): ...
class Conc(ABCd):
    def go(self): return self.k
    k = 1.0
    kn = None
cc = Conc()
class GA:
    def __init__(self): self.d = {"u": 1.0}
    def __getattribute__(self, n):
        own = object.__getattribute__
        return own(self, "d").get(n) if n == "u" else own(self, n)
ga = GA()
class It:
    def __init__(self): self.items = [1.0, 2.0]
    def __iter__(self):
        for k in self.items: yield k
it = It()
WD = weakref.WeakValueDictionary(); WD["a"] = nd
SL = slice(0, 2); RG = range(3)
FS = frozenset({1.0, (2.0, 3.0)})
LL = [[1.0, [2.0, {"z": [3.0]}]]]
CX = [lambda: G, lambda: GN, lambda k=1.0: k]
MV = memoryview(bytearray(b"abc"))
GEN = {"fn": {"f": lambda: o.v, "n": None}}
def rec(n): return 1.0 if n == 0 else rec(n - 1) + G
def outer():
    def inner(): return G
    return inner
inn = outer()
class CallableCls:
    k = 1.0
    def __new__(cls): return cls.k
class WithInit:
    base = 1.0
    def __init__(self, m=1.0): self.v = m * self.base
META = {"cfg": types.SimpleNamespace(lr=1.0, opts=None)}
npa = {"w": np.ones(2), "b": None}
arrs = [np.ones(2), np.zeros(2)]
tup = (np.ones(2), {"k": np.ones(2)})
"""

_READS = """
G; GN; o.v; o.c; o.n; o.d; o.dn; o.opt; o.lst[0]; o.dct['k']; o.prop; o.cm(); Derived.cm(); o.sm(); o.meth();
len(o); o[0]; 1.0 in o; list(o); bool(o); 1.0 if o else 2.0; o(2.0); o == 1.0; 1.0 + o.v; Base.c; Derived.c;
Derived.n; Derived.dn; Derived.d; wd.z; WithDesc.z; wd.cp; dy.q; getattr(dy,'zz',None);
getattr(o,'missing',None); hasattr(o,'extra'); hasattr(Base,'extra'); getattr(o,'opt'); sl.a; sl.b;
hasattr(sl,'b'); dc.p; dc.q; dc.r[0]; dc.r[1][0]; dataclasses.asdict(dc)['p']; dataclasses.replace(dc,p=3.0).q;
wm.m if hasattr(wm,'m') else 0; WithMeta.m; WithMeta.mn; ld['a']; ld['zzz']; ld.get('zzz'); L[0]; L[1][1];
L[2][1][0]; len(L); L[-1][0]; D['a']; D['b']['c']; D['b']['n']; D.get('zz'); D.get('a',0); D[3]; D[(1,2)];
len(D); 'new' in D; list(D); sorted(map(str,D)); sum(v for v in D.values() if isinstance(v,float)); T[0][0];
T[1]['x']; 1.0 in S; len(S); DQ[0]; len(DQ); DD['a']; DD.get('zz'); CM['a']; CM['b']; list(OD); OD['a'];
NT.x[0]; NT.y; NS.a; NS.n; NS.deep.v; vars(NS)['a']; float(A[0]); A[1]; A.sum(); AO[0]; AO[2][0]; BA[0];
len(BA); CV.get(); MOD.val; MOD.none; MOD.sub.w; helper(); helper2(); helper.attr; getattr(helper,'other',None);
counter(); PT(); PTL(); BM(); AG(o); IG(D); WR().v; getc(); type(o).c; o.__class__.c; o.__dict__['v'];
super(Derived,o).c; Base.__dict__['c']; copy.copy(o).v; copy.deepcopy(NS).deep.v; (lambda: G)();
[G for _ in range(2)][0]; max(L[0],G); functools.reduce(lambda a,b:a+b,[G,o.v]); os.environ.get('PYOP_WORLD','0');
isinstance(o,Derived); type(o).__name__; o.__class__ is Derived; issubclass(Derived,Base); callable(NS.a);
L[0] is D['a']; str(NS.a); repr(L); f'{G}'; sum(o); min(DQ); any(L); all(S); sorted(S)[0];
list(reversed(DQ))[0]; dict(D)['a']; tuple(L)[0]; [*L][0]; {**D}['a']; (lambda *a: a[0])(*L);
(lambda **k: k['a'])(**{k:v for k,v in D.items() if isinstance(k,str)}); L.index(1.0) if 1.0 in L else -1;
DQ.count(1.0); S & {1.0}; S | {7.0}; D | {'z':1}; L + [1]; L * 2; L == [1.0]; D == {}; L < [2.0];
np.array(L[0]); np.asarray(DQ); np.float64(G); round(G); abs(G); -G; divmod(G,2); pow(G,2); int(G); hash(G);
operator.add(G,1); operator.getitem(L,0); getattr(NS,'a'); vars(o)['v']; o.__getattribute__('v');
object.__getattribute__(o,'v'); type.__getattribute__(Base,'c'); next(iter(L)); next(iter(D));
list(zip(L,DQ))[0]; list(enumerate(L))[0]; list(map(str,L))[0]; list(filter(None,L))[0]; dir(NS);
D.keys() >= {'a'}; list(D.items())[0][0]; CM.maps[0]['a']; DD.default_factory(); ld.default; Sl.a.__get__(sl);
MOD.__dict__['val']; globals()['G']; G if 'G' in globals() else 0; tn.a[0]; tn.b; tn.a; E.A.value; E.B.value[0];
len(E); sd.x; sd.y; sd.w[0]; getattr(sd,'zz',None); ds.p; ds.q; df.p; df.r[0]; UD['a']; UL[0]; len(UD); len(UL);
AR[0]; sum(AR); CNT['a']; CNT['zz']; CNT.most_common(1)[0][1]; TL.v; getattr(TL,'w',None); sdp(1); sdp('a');
sdp(1.5); cached(1.0); decorated(1.0); decorated.offset; pr.v; pr.walk(); pr.cb(1.0); len(pr.children); nd.v;
nd.nxt.v; nd.nxt.nxt.v; cyc.nxt.nxt.v; cc.go(); cc.k; cc.kn; Conc.kn; ga.u; list(it)[0]; sum(it); WD['a'].v;
WD.get('zz'); SL.stop; RG[1]; FS; LL[0][1][1]['z'][0]; LL[-1][-1][0]; CX[0](); CX[1](); CX[2](); MV[0];
GEN['fn']['f'](); GEN['fn']['n']; rec(2); inn(); CallableCls(); WithInit().v; WithInit(2.0).v; META['cfg'].lr;
META['cfg'].opts; npa['w'][0]; npa['b']; arrs[0].sum(); arrs[1][0]; tup[0][0]; tup[1]['k'][1]; len(arrs);
abs(-1.0); len([1,2]); max(1,2); math.pi; math.floor(1.5); np.pi; np.get_printoptions()['precision'];
np.geterr()['divide']; sys.getrecursionlimit(); json.dumps(D['b']); bisect.bisect(UL.data, 1.5);
heapq.nsmallest(1, UL.data)[0]; string.digits; re.sub('a','b','aa'); copy.copy(pr).v; copy.deepcopy(pr).walk();
dataclasses.astuple(df)[0]; dataclasses.fields(DC)[0].name; inspect.signature(helper2).parameters['k'].default;
DC.__dataclass_fields__['p'].default; DC().p; DC().q; TN().a; TN._field_defaults['a']; TN._fields[0];
isinstance(nd,Node); isinstance(sd,collections.abc.Sized); issubclass(Conc,ABCd); callable(pr); {**UD}['a'];
[*UL][0]; 'a' in UD; 1.0 in UL; sorted(UD)[0]; {k:v for k,v in META.items()}['cfg'].lr; next(iter(UD));
pr.__dict__['_v']; vars(pr)['_v']; getattr(getattr(pr,'children')['x'],'_v'); operator.attrgetter('nxt.v')(nd);
operator.methodcaller('walk')(pr); operator.itemgetter(0)(UL); functools.partial(cached,2.0)();
functools.reduce(operator.add,UL); list(map(cached,[1.0]))[0]; any(c._v>1.5 for c in pr.children.values());
[c.v for c in pr.children.values()][0]; sum(v for v in UD.values()); nd == cyc; bool(UD); not UL;
pr.children.get('q'); pr.children.setdefault('x',None)._v; (lambda z: z.v)(nd); type(nd).__name__;
type(pr).v.fget(pr); Prop.walk(pr); Prop.__dict__['walk'](pr); getattr(Prop,'newattr',None); hasattr(nd,'w');
hasattr(Prop,'zz'); id(nd.nxt)==id(nd.nxt); nd.nxt is cyc;
"""

_CHANGES = """
G=2.0; G=None; G=1.0; GN=3.0; GN=None; o.v=2.0; o.v=1.0; Base.c=3.0; Base.c=1.0; Derived.c=5.0; del Derived.c;
o.c=7.0; del o.c; Base.n=2.0; Base.n=None; o.n=3.0; del o.n; Derived.dn=1.5; Derived.dn=None; Derived.d=9.0;
o.opt=2.0; o.opt=None; Base.lst[0]=9.0; Base.lst.append(1); Base.lst=[4.0]; o.lst=[8.0]; Base.dct['k']=6.0;
Base.dct={'k':2.0}; Base.prop=property(lambda s: 33.0); Base.prop=property(lambda s: s.v*2);
Base.cm=classmethod(lambda cls: 44.0); Base.sm=staticmethod(lambda: 55.0); Base.meth=lambda self: 66.0;
o.meth=lambda: 77.0; o.items.append(3.0); o.items[0]=5.0; o.items=[1.0]; o.flag=False; o.flag=True; o.flag=0;
Base.__len__=lambda s: 12; Base.__getitem__=lambda s,k: 13.0; Base.__bool__=lambda s: False;
Base.__call__=lambda s,k: 14.0; Base.__eq__=lambda s,k: 15.0; Base.__contains__=lambda s,k: False;
wd.__class__.z.val=4.0; WithDesc.__dict__['z'].val=2.0; WithDesc.z=5.0; wd.z=6.0; wd.__dict__.pop('cp',None);
wd.cp=8.0; dy.store['q']=2.0; dy.store['zz']=3.0; dy.q=5.0; dy.store={'q':7.0}; o.missing=1.0; o.extra=1;
del o.extra; Base.extra=1; del Base.extra; sl.a=2.0; sl.b=3.0; sl.b=None; del sl.b; dc.p=4.0; dc.q=2.0;
dc.q=None; dc.r[0]=3.0; dc.r[1][0]=5.0; dc.r=[0.0,[1.0]]; Meta.m=3.0; Meta.mn=4.0; WithMeta.m=8.0;
WithMeta.mn=2.0; ld['a']=2.0; ld['zzz']=3.0; ld.default=6.0; ld.pop('zzz',None);
LogDict.__missing__=lambda s,k: 88.0; L[0]=2.0; L[0]=1.0; L[1][1]=3.0; L[1][1]=None; L[2][1][0]=6.0;
L.append(5.0); L.insert(0,7.0); L.pop(); L.reverse(); L=[9.0,[1.0,2.0],(3.0,[4.0])]; D['a']=2.0;
D['b']['c']=5.0; D['b']['n']=1.0; D['b']={'c':7.0,'n':None}; D['zz']=1.0; D[3]=8.0; D[(1,2)]=9.0; D['new']=1.0;
D.pop('new',None); D.pop('zz',None); D={'a':3.0,'b':{'c':1.0,'n':2.0},3:1.0,(1,2):2.0}; T[0][0]=4.0;
T[1]['x']=5.0; S.add(7.0); S.discard(1.0); S={5.0}; DQ.append(4.0); DQ.appendleft(8.0); DQ[0]=3.0; DQ.rotate(1);
DD['a']=5.0; DD['zz']=2.0; DD.default_factory=lambda: 11.0; CM['a']=4.0; CM['b']=9.0; CM.maps[1]['b']=7.0;
CM.maps.reverse(); OD.move_to_end('a'); OD['a']=4.0; OD['zz']=1.0; NT.x[0]=4.0; NT=NT._replace(y=7.0); NS.a=3.0;
NS.n=1.0; NS.n=None; NS.deep.v=4.0; NS.deep=types.SimpleNamespace(v=9.0);
NS=types.SimpleNamespace(a=6.0,n=2.0,deep=types.SimpleNamespace(v=2.0)); A[0]=5.0; A[:]=2.0;
A=np.array([7.0,8.0,9.0]); A=A.astype('f4'); AO[0]=3.0; AO[2][0]=8.0; BA[0]=7; BA.append(3); CV.set(4.0);
CV.set(1.0); MOD.val=5.0; MOD.none=2.0; MOD.none=None; MOD.sub.w=6.0; MOD.sub=types.SimpleNamespace(w=3.0);
helper=lambda: 21.0; helper.__code__=(lambda: 22.0).__code__; helper2.__defaults__=(5.0,);
helper2.__kwdefaults__={'kk':3.0}; helper2.__kwdefaults__['kk']=4.0; helper.attr=3.0; helper.other=5.0;
counter.__code__=(lambda: 3.0).__code__; PT.keywords['b']=1; PT=functools.partial(lambda a,b=1.0:a*b,5.0);
PTL.args[0][0]=9.0; putc(2.0,None); putc(2.0,3.0); putc(1.0,None); o.__class__=Base; o.__class__=Derived;
os.environ['PYOP_WORLD']='5'; os.environ.pop('PYOP_WORLD',None); o.__dict__['v']=12.0; vars(NS)['a']=13.0;
setattr(Base,'c',14.0); o=Derived.__new__(Derived);
o.__dict__.update(v=5.0,items=[4.0],flag=True,idx=0,opt=1.0); dc=DC(p=9.0); sl.a=9.0;
Base.__add__=lambda s,k: 0; Base.__iter__=lambda s: iter([3.0]); Base.__float__=lambda s: 3.0;
globals()['G']=17.0; tn.a[0]=4.0; tn=TN([7.0],2.0); tn=TN(); E.B.value[0]=5.0; sd.x=4.0; sd.y=5.0; sd.w[0]=6.0;
sd.w=[7.0]; sd.zz=1.0; SD.zz=3.0; ds.p=4.0; ds.q=1.0; df.r[0]=6.0; object.__setattr__(df,'p',8.0); UD['a']=3.0;
UD['b']=1.0; UD.data['a']=7.0; UD.data={'a':9.0}; UL[0]=4.0; UL.append(2.5); UL.data=[8.0]; UL.data[0]=0.5;
AR[0]=5.0; AR.append(2.0); CNT['a']+=1; CNT['zz']=4; CNT.update(a=5); TL.v=6.0; TL.w=2.0;
sdp.register(int,lambda k: 7.0); sdp.register(float,lambda k: 8.0); cached.cache_clear(); G=5.0;
decorated.offset=4.0; decorated=lambda k: 31.0; pr.v=5.0; pr._v=6.0; pr.children['x']._v=8.0;
pr.children['z']=Prop(); pr.children.pop('y',None); pr.children={}; pr.cb=lambda k: 9.0; Prop.v=7.0;
Prop.v=property(lambda s: 41.0); Prop.walk=lambda s: 42.0; nd.v=4.0; nd.nxt.v=5.0; nd.nxt.nxt.v=6.0; nd.nxt=cyc;
nd.nxt.nxt=None; cyc.v=8.0; Conc.k=4.0; cc.k=6.0; Conc.kn=2.0; ABCd.kn=3.0; del Conc.kn; Conc.go=lambda s: 43.0;
ga.d['u']=5.0; ga.d={'u':6.0}; it.items[0]=5.0; it.items=[9.0]; It.__iter__=lambda s: iter([4.0]); WD['a']=cyc;
WD['zz']=cyc; SL=slice(0,5); RG=range(1,9); LL[0][1][1]['z'][0]=7.0; LL.append([1.0,[4.0]]); LL[0][1][0]=8.0;
CX[0]=lambda: 14.0; CX.reverse(); CX[2].__defaults__=(6.0,); GN=5.0; MV[0]=7; GEN['fn']['f']=lambda: 15.0;
GEN['fn']['n']=2.0; o.v=16.0; rec=lambda n: 17.0; inn=lambda: 18.0; CallableCls.k=5.0;
CallableCls.__new__=lambda cls: 51.0; WithInit.base=6.0; WithInit.__init__.__defaults__=(9.0,);
META['cfg'].lr=4.0; META['cfg'].opts=3.0; META['cfg']=types.SimpleNamespace(lr=8.0,opts=1.0); npa['w'][0]=5.0;
npa['w']=np.full(2,6.0); npa['b']=2.0; arrs[0][1]=7.0; arrs[1]=np.ones(2); arrs.append(0); tup[0][0]=4.0;
tup[1]['k'][1]=9.0; tup[1]['k']=np.zeros(2); abs=lambda k: 61.0; len=lambda k: 62; max=lambda *k: 63;
np.set_printoptions(precision=5); np.set_printoptions(precision=8); D['b']['c']=71.0;
helper2.__defaults__=(72.0,); DC.__init__.__defaults__=(73.0,None); DC.p=74.0;
TN.__new__.__defaults__=(75.0,76.0); Prop.newattr=1.0; Node.w=1.0; Prop.zz=None; Node.__eq__=lambda a,b: True;
pr.__dict__['_v']=81.0; vars(pr).update(_v=82.0); setattr(nd,'v',83.0);
nd.__class__=type('N2',(Node,),{'v2':1});
"""


def _parts(text: str) -> list[str]:
    return [part for line in text.splitlines() for part in map(str.strip, line.split("; ")) if part]


READS, CHANGES = ([part.rstrip(";") for part in _parts(text)] for text in (_READS, _CHANGES))

# Where what is read hangs on, by the name that reads it.
RELATED = {
    "o": ("Base", "Derived"),
    "super": ("o", "Base", "Derived"),
    "Derived": ("Base",),
    "BM": ("o", "Base"),
    "wd": ("WithDesc",),
    "wm": ("Meta", "WithMeta"),
    "WithMeta": ("Meta",),
    "getc": ("putc",),
    "pr": ("Prop",),
    "nd": ("Node", "cyc"),
    "cyc": ("Node", "nd"),
    "cc": ("Conc", "ABCd"),
    "it": ("It",),
    "sd": ("SD",),
    "ld": ("LogDict",),
    "helper": ("G",),
    "cached": ("G",),
}
