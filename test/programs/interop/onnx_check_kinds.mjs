/**
 * Kinds of differences between a strict check and its readers, as docs/testing.md lists them. The first that fits counts: `by`
 * who refuses alone, `message` of the one that refuses, `model` the name of the model. `isCounted` is
 * false where onnxruntime refuses such models too: their number follows from the changes, not from faults of the check.
 */
const KINDS = [
  { by: 'tilework', what: 'two nodes of one name', message: /as another node of/, isCounted: false },
  {
    by: 'tilework',
    what: 'a shape that only tilework infers',
    message: /follows from its node|cannot broadcast|\(Concat\) has \d+ for dimension/,
  },
  { by: 'checker', what: 'the checker crashes', message: /^the checker crashes|_M_range_check/ },
  {
    by: 'checker',
    what: 'an attribute that refers to one of a function, in no function',
    model: / reference$/,
  },
  { by: 'checker', what: 'nodes that are not sorted', message: /topologically sorted/ },
  {
    by: 'checker',
    what: 'a function of the standard, whose body the checker infers',
    message: /MeanVarianceNormalization|inconsistent type/,
  },
  {
    by: 'checker',
    what: 'a preview or an operator for training',
    message: /FlexAttention|Adagrad|Momentum|Adam|Gradient|softmax_precision/,
  },
  {
    by: 'checker',
    what: 'another declared shape, where only the checker infers one',
    message: /shape and existing shape differ/,
  },
  {
    by: 'checker',
    what: 'another declared type, where only the checker infers one',
    message: /elem type differs|type case mismatch|Invalid tensor data type|expected to be a tensor/,
  },
  {
    by: 'checker',
    what: 'an input without a type',
    message: /typestr:|is null|was not a tensor|expected to have type info|missing type/,
  },
  {
    by: 'checker',
    what: 'dimensions of several inputs of one operator',
    message: /in unification|Incompatible dimensions|inferred and declared dim/,
  },
  {
    by: 'checker',
    what: 'the rank or the length of an input of one operator',
    message:
      /[Rr]ank|Length of input|at least \d+ dimensions|Input shape|-dimensional|Number of elements|Invalid position|must be same|shall be/,
  },
  {
    by: 'checker',
    what: 'the value of an attribute of one operator',
    message:
      /output_dtype|update_rule|num_heads|activation|[Aa]ttribute|multiple|must|Invalid value|Graph has|Mismatch|evenly|same elem type|ngram|typestr|bounds|subgraph|negative|output size/,
  },
  {
    by: 'onnxruntime',
    what: 'an operator or a type that it lacks',
    message: /not a registered|not currently registered|MLDataType/,
  },
  {
    by: 'onnxruntime',
    what: 'a kernel that refuses an attribute or a constant',
    message: /Exception during (initialization|loading)/,
  },
  {
    by: 'onnxruntime',
    what: 'a type or shape that follows from computed values',
    message: /Node \([^)]*\) Op|Type Error|In Node|INVALID_GRAPH|[Ss]hape/,
  },
]

/** @param {{ checker: string | null, runtime: string | null, refusal: string | undefined }} difference */
export function kindOf(name, { checker, runtime, refusal }) {
  const [by, text] =
    checker !== null
      ? ['checker', checker]
      : refusal === undefined
        ? ['onnxruntime', runtime]
        : ['tilework', refusal]
  const kind = KINDS.find(
    (each) =>
      each.by === by && (!each.message || each.message.test(text)) && (!each.model || each.model.test(name)),
  )
  return kind && { what: `${by} refuses: ${kind.what}`, isCounted: kind.isCounted ?? true }
}
