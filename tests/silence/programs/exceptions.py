"""Exceptions caught inside: a program goes on where NumPy raises, and is not to go on where NumPy does not."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np

from . import program, smooth


@smooth("f8[3]")
def index_out_of_range(x):
    try:
        return x[5] * 2
    except IndexError:
        return x[0] * 3


@smooth("f8[3]")
def too_many_indices(x):
    try:
        return x[0, 0]
    except IndexError:
        return x[1]


@smooth("f8[3]")
def shapes_that_do_not_fit(x):
    try:
        return x + np.ones(4)
    except ValueError:
        return x * 2


@smooth("f8[3]")
def product_that_does_not_fit(x):
    try:
        return x @ np.ones((4, 2))
    except ValueError:
        return x * 2


@smooth("f8[3]")
def reshape_that_does_not_fit(x):
    try:
        y = x.reshape(2, 2)
    except ValueError:
        y = x.reshape(3, 1)
    return y * 2


@smooth("f8[3]")
def concatenation_that_does_not_fit(x):
    try:
        return np.concatenate([x, np.ones((2, 2))])
    except ValueError:
        return x


@smooth("f8[3]")
def wrong_axis(x):
    try:
        return x.sum(axis=3)
    except np.exceptions.AxisError:
        return x.sum() * 2


@smooth("f8[3]")
def wrong_type(x):
    try:
        return x + "text"
    except (TypeError, np.exceptions.DTypePromotionError):
        return x * 2


@smooth("f8[3]")
def no_such_attribute(x):
    try:
        return x.values * 2
    except AttributeError:
        return x * 3


@smooth("f8[3]")
def attribute_with_a_default(x):
    return getattr(x, "values", x) * 2


@smooth("f8[3]")
def setting_an_attribute(x):
    try:
        x.label = "a"
    except AttributeError:
        return x * 2
    return x * 3


@smooth("f8[2,2]")
def singular_matrix(x):
    try:
        return np.linalg.inv(np.zeros((2, 2))) @ x
    except np.linalg.LinAlgError:
        return x * 2


@program("f8[2,2]", inside=np.linalg.LinAlgError)
def singular_matrix_of_the_argument(x):
    try:
        return np.linalg.inv(x * 0)
    except np.linalg.LinAlgError:
        return x * 2


@program("f8[2,2]", inside=np.linalg.LinAlgError)
def not_positive_definite(x):
    try:
        return np.linalg.cholesky(x - 100 * np.eye(2))
    except np.linalg.LinAlgError:
        return x * 2


@program("f8[3]")
def division_raised_by_errstate(x):
    with np.errstate(all="raise"):
        try:
            return 1 / (x * 0)
        except FloatingPointError:
            return x * 2


@program("f8[3]")
def logarithm_raised_by_errstate(x):
    try:
        with np.errstate(invalid="raise"):
            y = np.log(-abs(x))
    except FloatingPointError:
        y = x * 0
    return y


@program("f8[3]")
def errstate_called_back(x):
    said = []
    with np.errstate(divide="call", call=lambda kind, flag: said.append(kind)):
        y = 1 / (x * 0)
    return y, len(said)


@program("f8[3]")
def errstate_as_a_decorator(x):
    @np.errstate(divide="raise")
    def inner(a):
        return 1 / (a * 0)

    try:
        return inner(x)
    except FloatingPointError:
        return x


@program("f8[3]")
def seterr_inside(x):
    old = np.seterr(divide="raise")
    try:
        return 1 / (x * 0)
    except FloatingPointError:
        return x * 2
    finally:
        np.seterr(**old)


@program("f8[3]")
def seterr_left_on(x):
    np.seterr(over="raise")
    return x * 2


@program("f8[3]")
def warning_recorded(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = 1 / (x * 0)
    return y if not caught else x


@program("f8[3]")
def warning_as_an_error(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.log(x * 0)
        except RuntimeWarning:
            return x * 2


@smooth("f8[3]")
def division_of_python(x):
    try:
        return x / (1 // 0)
    except ZeroDivisionError:
        return x * 2


@program("f8[3]")
def division_of_numbers_taken_out(x):
    try:
        return 1.0 / float(x[0] * 0)
    except ZeroDivisionError:
        return 5.0


@smooth("f8[3]")
def stop_iteration(x):
    it = iter(x)
    total = 0.0
    while True:
        try:
            total = total + next(it)
        except StopIteration:
            return total


@smooth("f8[3]")
def suppressed(x):
    y = x * 1
    with contextlib.suppress(IndexError):
        y = y + 1
        y = y[7]
    return y


@smooth("f8[3]")
def suppressed_write(x):
    y = x * 1
    with contextlib.suppress(Exception):
        y[0] = 5
        y[9] = 1
    return y


@smooth("f8[3]")
def suppressed_everything_about_a_number(x):
    y = x * 1
    with contextlib.suppress(Exception):
        y = y * float(x[0])
    return y


@smooth("f8[3]")
def bare_except_about_a_write(x):
    y = x * 1
    try:
        v = y[1:]
        v += 1
    except:  # noqa: E722
        return x * 0
    return y


@smooth("f8[3]")
def finally_writes(x):
    y = x * 1
    try:
        return y
    finally:
        y += 1


@program("f8[3]")
def finally_after_an_error(x):
    y = x
    try:
        y = x.reshape(7)
    finally:
        x += 1
    return y


@smooth("f8[3]")
def else_after_try(x):
    try:
        y = x.reshape(3, 1)
    except ValueError:
        return x
    else:
        return y * 2


@program("f8[3]")
def raised_by_the_program(x):
    raise ValueError("no")


@program("f8[3]")
def raised_after_a_write(x):
    x += 1
    raise KeyError("after")


@program("f8[3]")
def raised_by_numpy_after_a_write(x):
    x[0] = 7
    x[9] = 1


@program("f8[3]")
def error_turned_into_another(x):
    try:
        x[9]
    except IndexError as error:
        raise RuntimeError("other") from error


@smooth("f8[3]")
def error_text_decides(x):
    try:
        x.reshape(7)
    except ValueError as error:
        return x * (2 if "cannot reshape array of size 3" in str(error) else 3)


@program("f8[3]")
def ambiguous_truth(x):
    try:
        return 1.0 if x > 0 else 2.0
    except ValueError:
        return 3.0


@program("f8[3]")
def not_of_an_array(x):
    try:
        return not x
    except ValueError:
        return 3.0


@program("f8[0]", inside=ValueError)
def maximum_of_nothing(x):
    try:
        return x.max()
    except ValueError:
        return -1.0


@program("f8[0]")
def mean_of_nothing(x):
    return np.mean(x)


@program("f8[3]", inside=IndexError)
def first_of_a_filter(x):
    try:
        return x[x > 100][0]
    except IndexError:
        return -1.0


@program("f8[3]")
def read_only_caught(x):
    b = np.broadcast_to(x, (2, 3))
    try:
        b[0] = 1
    except ValueError:
        return x * 2
    return b


@program("i8[3]", inside=ValueError)
def integer_power_caught(k):
    try:
        return k**-1
    except ValueError:
        return k * 2


@program("i8[3]")
def casting_caught(k):
    y = k * 1
    try:
        y += 0.5
    except TypeError:
        y += 1
    return y


@program("i8[3]", inside=OverflowError)
def overflow_caught(k):
    try:
        return k + 2**70
    except (OverflowError, TypeError):
        return k


@smooth("f8[3]")
def keyword_not_known(x):
    try:
        return np.sum(x, nothing=1)
    except TypeError:
        return x.sum()


@smooth("f8[3]")
def nested_handlers(x):
    try:
        try:
            x[9]
        except KeyError:
            return x
        finally:
            x = x * 2
    except LookupError:
        return x * 3
    return None


def numbers_of(x):
    for k in range(10):
        try:
            yield x[k]
        except IndexError:
            return


@smooth("f8[3]")
def generator_that_ends_by_an_error(x):
    return sum(numbers_of(x)) * 2


@smooth("f8[3]")
def old_iteration_protocol(x):
    class Items:
        def __getitem__(self, k):
            return x[k]

    return sum(list(Items())) * 2
