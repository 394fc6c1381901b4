/** Stands for onnxruntime-node: opens a model with tilework and computes a few operators. */
import { asTensor, type DenseTensor, open, tensor } from '../../../lib/index.js'
import type { Graph, Node } from '../../../lib/onnx.js'

/** A tensor as the runtime has it. */
export interface Fed {
  readonly type: string
  readonly dims: readonly number[]
  readonly data: unknown
}

interface Value {
  readonly dtype: string
  readonly dims: readonly number[]
  readonly numbers: readonly number[]
}

type Operator = (node: Node, inputs: readonly Value[]) => Value

const broadcast =
  (compute: (a: number, b: number) => number): Operator =>
  (_, [a, b]) => {
    const [long, short] = [a!, b!]
    const numbers = long.numbers.map((number, at) =>
      Math.fround(compute(number, short.numbers[at % short.numbers.length]!)),
    )
    return { ...long, numbers }
  }

const OPERATORS: Readonly<Record<string, Operator>> = {
  Add: broadcast((a, b) => a + b),
  Mul: broadcast((a, b) => a * b),
  Div: broadcast((a, b) => a / b),
  Identity: (_, [x]) => x!,
  RandomNormalLike: (_, [x]) => ({ ...x!, numbers: x!.numbers.map(() => Math.random()) }),
  Cast: (node, [x]) => ({ ...x!, dtype: node.attribute('to')?.value === 10 ? 'float16' : 'float32' }),
  Gather: (_, [table, ids]) => {
    const width = table!.dims[1]!
    const numbers = ids!.numbers.flatMap((id) => {
      if (id < 0 || id >= table!.dims[0]!) throw new Error(`index ${id} is out of bounds`)
      return table!.numbers.slice(id * width, (id + 1) * width)
    })
    return { dtype: table!.dtype, dims: [...ids!.dims, width], numbers }
  },
}

async function decoded(dense: DenseTensor): Promise<Value> {
  const numbers = Array.from((await dense.toTypedArray()) as Iterable<number | bigint>, Number)
  return { dtype: dense.dtype, dims: dense.shape, numbers }
}

async function computed(
  graph: Graph,
  feeds: Readonly<Record<string, Fed>>,
  names: readonly string[],
): Promise<Record<string, Fed>> {
  const values = new Map<string, Value>()
  for (const each of graph.initializers()) values.set(each.name, await decoded(each as DenseTensor))
  for (const [name, fed] of Object.entries(feeds)) values.set(name, await decoded(asTensor(fed)))
  for (const { name } of graph.inputs) if (!values.has(name)) throw new Error(`no value for ${name}`)
  for (const node of graph.nodes) {
    const operator = OPERATORS[node.opType]
    if (!operator) throw new Error(`no kernel for ${node.opType}`)
    values.set(
      node.outputs[0]!,
      operator(
        node,
        node.inputs.map((name) => values.get(name)!),
      ),
    )
  }
  const results: Record<string, Fed> = {}
  for (const name of names) {
    const { dtype, dims, numbers } = values.get(name)!
    const dense = tensor(Float64Array.from(numbers), { dtype: dtype as 'float32', shape: dims })
    const data = dtype === 'float16' ? await dense.bits() : await dense.toTypedArray()
    results[name] = { type: dtype, dims, data }
  }
  return results
}

export class FakeRuntime {
  /** Inputs of every run. */
  readonly feeds: Readonly<Record<string, Fed>>[] = []
  readonly paths: string[] = []
  openSessions = 0
  /** Throws for paths that are not loaded, and for inputs that are not taken. */
  refuseLoad: (path: string) => void = () => undefined
  refuseRun: (feeds: Readonly<Record<string, Fed>>) => void = () => undefined

  readonly Tensor = class implements Fed {
    constructor(
      readonly type: string,
      readonly data: unknown,
      readonly dims: readonly number[],
    ) {}
  }

  readonly InferenceSession = {
    create: async (path: string) => {
      this.paths.push(path)
      this.refuseLoad(path)
      const file = await open(path)
      this.openSessions++
      return {
        run: async (feeds: Readonly<Record<string, Fed>>, names: readonly string[]) => {
          this.feeds.push(feeds)
          this.refuseRun(feeds)
          return computed(file.onnx!.graph, feeds, names)
        },
        release: async () => {
          this.openSessions--
          file.close()
        },
      }
    },
  }
}
