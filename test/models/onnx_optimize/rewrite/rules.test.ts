/** Rules of users: what patterns match, what conditions see, what takes the place, and what is refused. */
import { describe, expect, it } from 'vitest'
import { tensor } from '../../../../lib/index.js'
import { addFunction, any, constant, node, type Rule, rewrite, rule } from '../../../../lib/onnx.js'
import { graphOf } from '../graph_text.js'
import { type ModelText, modelOf, textsOf } from '../model_text.js'

const X = { x: 'float32 N 4' }
const f0 = (value: number) => tensor(value, { dtype: 'float32' })

const x = any('x')
const mulOne = rule({
  name: 'mul-one',
  match: node('Mul', [x, constant(1)], { commutative: true }),
  where: ({ x, output, same }) => same(x, output),
  replace: ({ x }) => x,
})
const negNeg = rule({ name: 'neg-neg', match: node('Neg', [node('Neg', [x])]), replace: ({ x }) => x })
const transposes = rule({
  name: 'transposes',
  match: node('Transpose', [node('Transpose', [x], { as: 'a' })], { as: 'b' }),
  replace: ({ x, a, b, make }) =>
    make('Transpose', [x], { perm: b.ints('perm')!.map((at) => a.ints('perm')![at]!) }),
})
const swish = rule({
  name: 'swish',
  rounding: true,
  match: node('Mul', [x, node('Sigmoid', [x])], { commutative: true }),
  replace: ({ x, make }) => make('Swish', [x], {}, { domain: 'my.ops' }),
  opsets: { 'my.ops': 1 },
})
const gemm = rule({
  name: 'gemm',
  rounding: true,
  match: node(
    'Add',
    [
      node('MatMul', [any('a', { rank: 2 }), any('w', { rank: 2 })], { outputs: ['product'] }),
      constant('c', { maxRank: 2 }),
    ],
    { commutative: true },
  ),
  where: ({ output, product, same }) => same(output, product),
  replace: ({ a, w, c, make }) => make('Gemm', [a, w, c]),
})

async function rewritten(text: ModelText, ...rules: Rule[]) {
  const model = modelOf(text)
  const changes = await rewrite(model, rules)
  return { model, changes, nodes: textsOf(model.graph) }
}

describe('rewrite', () => {
  it('replaces what patterns match, of commutative operators in both orders', async () => {
    const text = {
      inputs: X,
      weights: { one: f0(1) },
      nodes: 'a = Mul(one, x); b = Neg(a); c = Neg(b); d = Mul(c, one); y = Relu(d)',
    }
    const { nodes, changes } = await rewritten(text, mulOne, negNeg)
    expect(nodes).toEqual(['y = Relu(x)'])
    expect(changes).toEqual([
      { rule: 'mul-one', changes: 2, nodes: ['a', 'd'] },
      { rule: 'neg-neg', changes: 1, nodes: ['c'] },
    ])
  })

  it('gives rules the nodes and attributes that matched', async () => {
    const nodes = 'a = Transpose<perm=[1,2,0]>(x); y = Transpose<perm=[1,2,0]>(a)'
    const found = await rewritten({ inputs: { x: 'float32 2 3 4' }, nodes }, transposes)
    expect(found.nodes).toEqual(['y = Transpose<perm=[2,0,1]>(x)'])
  })

  it('makes nodes of other domains, and imports their operator set', async () => {
    const { model, nodes } = await rewritten({ inputs: X, nodes: 's = Sigmoid(x); y = Mul(s, x)' }, swish)
    expect(nodes).toEqual(['y = Swish(x)'])
    expect(model.graph.nodes[0]!.domain).toBe('my.ops')
    expect(Number(model.opsetImports.get('my.ops'))).toBe(1)
  })

  it('looks at shapes that follow from the inputs', async () => {
    const weights = {
      w: tensor(new Float32Array(12), { shape: [4, 3] }),
      c: tensor(new Float32Array(3), { shape: [3] }),
    }
    const nodes = 'p = MatMul(x, w); y = Add(c, p)'
    expect((await rewritten({ inputs: X, weights, nodes }, gemm)).nodes).toEqual(['y = Gemm(x, w, c)'])
    const grows = { ...weights, c: tensor(new Float32Array(6), { shape: [2, 3] }) }
    const one = { x: 'float32 1 4' }
    expect((await rewritten({ inputs: one, weights: grows, nodes }, gemm)).nodes).toHaveLength(2)
  })

  it('leaves nodes that others use, unless the pattern keeps them', async () => {
    const text = { inputs: X, outputs: 'y z', nodes: 'a = Neg(x); y = Neg(a); z = Exp(a)' }
    expect((await rewritten(text, negNeg)).nodes).toHaveLength(3)
    const kept = rule({
      name: 'kept',
      match: node('Neg', [node('Neg', [x], { shared: 'keep' })]),
      replace: ({ x }) => x,
    })
    expect((await rewritten(text, kept)).nodes).toEqual(['a = Neg(x)', 'y = Identity(x)', 'z = Exp(a)'])
  })

  it('takes an absent attribute for its default, and null for none', async () => {
    const matches = async (pattern: Parameters<typeof node>[2], nodes: string) => {
      const found = rule({
        name: 'leaky',
        match: node('LeakyRelu', [x], pattern as object),
        replace: ({ root }) => root.input(0),
      })
      return (await rewritten({ inputs: X, nodes }, found)).changes[0]!.changes
    }
    expect(await matches({ attributes: { alpha: 0.01 } }, 'y = LeakyRelu(x)')).toBe(1)
    expect(await matches({ attributes: { alpha: 0.01 } }, 'y = LeakyRelu<alpha=0.02>(x)')).toBe(0)
    expect(await matches({ attributes: { alpha: null } }, 'y = LeakyRelu(x)')).toBe(1)
    expect(await matches({ attributes: { alpha: null } }, 'y = LeakyRelu<alpha=0.01>(x)')).toBe(0)
  })

  it.each([
    [1, [1, 1], true],
    [1, [1.0000001, 1], false],
    [0, [-0, -0], false],
    [-0, [-0, -0], true],
    [0.1, [0.1, 0.1], true],
    [Number.NaN, [Number.NaN, Number.NaN], true],
  ])('constant(%s) and %o: %s', async (number, elements, isMatch) => {
    const weights = { k: tensor(Float32Array.from(elements), { shape: [2] }) }
    const any = rule({ name: 'any', match: node('Add', [x, constant(number)]), replace: ({ x }) => x })
    const text = { inputs: { x: 'float32 2' }, weights, nodes: 'y = Add(x, k)' }
    expect((await rewritten(text, any)).changes[0]!.changes).toBe(isMatch ? 1 : 0)
  })

  it('makes several outputs, and constants', async () => {
    const halves = rule({
      name: 'halves',
      match: node('Split', [x, constant('sizes')], { attributes: { axis: 1 } }),
      replace: ({ x, make, makeConstant }) => {
        const index = (at: number) => makeConstant(tensor([BigInt(at)], { dtype: 'int64', shape: [1] }))
        return [0, 2].map((at) => make('Slice', [x, index(at), index(at + 2), index(1)]))
      },
    })
    const weights = { k: tensor([2n, 2n], { dtype: 'int64', shape: [2] }) }
    const text = { inputs: X, weights, outputs: 'a b', nodes: 'a, b = Split<axis=1>(x, k)' }
    const { nodes, model } = await rewritten(text, halves)
    expect(nodes).toEqual(['a = Slice(x, a_1, a_2, a_3)', 'b = Slice(x, a_4, a_5, a_6)'])
    expect(model.graph.hasInitializer('k')).toBe(false)
  })

  it('visits subgraphs and functions, and counts their uses; patterns end at a graph', async () => {
    const branch = graphOf('p = Neg(a); r = Neg(p)', 'r')
    const text = {
      inputs: { ...X, c: 'bool' },
      graphs: { yes: branch, no: graphOf('r = Neg(a)', 'r') },
      nodes: 'a = Neg(x); y = If<then_branch=@yes,else_branch=@no>(c)',
    }
    const model = modelOf(text)
    addFunction(model, {
      domain: 'own',
      name: 'twice',
      inputs: ['u'],
      outputs: ['v'],
      nodes: [
        { opType: 'Neg', inputs: ['u'], outputs: ['t'] },
        { opType: 'Neg', inputs: ['t'], outputs: ['s'] },
        { opType: 'Exp', inputs: ['s'], outputs: ['v'] },
      ],
      opsetImports: { '': 17 },
    })
    const [change] = await rewrite(model, [negNeg])
    expect(change!.changes).toBe(2)
    expect([...model.graph.subgraphs()].map(textsOf)).toEqual([['r = Identity(a)'], ['r = Neg(a)']])
    expect(model.functions[0]!.nodes.map(({ opType, inputs }) => `${opType}(${inputs})`)).toEqual(['Exp(u)'])
  })
})

describe('rewrite refuses', () => {
  const grows = rule({
    name: 'grows',
    match: node('Relu', [x]),
    replace: ({ x, make }) => make('Relu', [make('Abs', [x])]),
  })
  const throws = rule({
    name: 'throws',
    match: node('Relu', [x]),
    replace: () => {
      throw new RangeError('no')
    },
  })
  it.each<[string, Rule[], string, string]>([
    ['a rule without an end', [grows], 'ERR_LIMIT', 'The rule grows finds something to do in what it made'],
    ['a rule that throws', [throws], 'ERR_ARGUMENT', 'The rule "throws" throws at the node "y"'],
    [
      'a rule that returns a text',
      [rule({ name: 'text', match: node('Relu'), replace: () => 'x' as never })],
      'ERR_ARGUMENT',
      'The rule "text" returns "x"',
    ],
    ['two rules of one name', [negNeg, negNeg], 'ERR_ARGUMENT', 'two rules of the name "neg-neg"'],
    ['what is no rule', [{ name: 'own' } as never], 'ERR_ARGUMENT', 'among its rules; rule() makes rules'],
    [
      'an attribute without a known type',
      [
        rule({
          name: 'untyped',
          match: node('Relu', [x]),
          replace: ({ x, make }) => make('Own', [x], { a: 1 }),
        }),
      ],
      'ERR_ARGUMENT',
      'The type of the attribute "a" of Own is not known',
    ],
  ])('%s, and changes nothing', async (_, rules, code, message) => {
    const model = modelOf({ inputs: X, nodes: 'a = Neg(x); b = Neg(a); y = Relu(b)' })
    const all = rules.includes(negNeg) ? rules : [negNeg, ...rules]
    await expect(rewrite(model, all)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
    expect(textsOf(model.graph)).toHaveLength(3)
  })

  it.each<[string, () => unknown, string]>([
    ['a name that rules have anyway', () => any('make'), 'any got the name "make"'],
    ['a constant of nothing', () => constant(undefined as never), 'constant got undefined'],
    ['an input that is no pattern', () => node('Add', ['x' as never]), 'node got "x" as an input'],
    [
      'a commutative node of one input',
      () => node('Relu', [any()], { commutative: true }),
      'node is commutative',
    ],
    [
      'an option that is not known',
      () => node('Relu', [any()], { shard: 'keep' } as never),
      'unknown option "shard"',
    ],
    [
      'a rule without a name',
      () => rule({ name: '', match: node('Relu'), replace: () => undefined }),
      'name of rule',
    ],
    [
      'a rule whose pattern is a value',
      () => rule({ name: 'a', match: any() as never, replace: () => undefined }),
      'match of rule',
    ],
  ])('%s', (_, make, message) => {
    expect(make).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT', message: expect.stringContaining(message) }),
    )
  })
})
