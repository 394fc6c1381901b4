/**
 * Performance goals of casts, and whether a run meets them. `pass` is the minimum and `goal` the target for the worst case
 * of a class, as a ratio to memcpy (M), to the streaming copy (S), to the same reorder without a cast, or to another library
 * in the same run. `limitedBy` names the bottleneck of a missed goal (docs/performance.md).
 */
import { castName } from './cast_cases.mjs'
import { rated, worstOf } from './goals.mjs'

const ANYWHERE = ['L2', 'L3', 'DRAM']
const CACHES = ['L2', 'L3']

/** Bottlenecks; docs/performance.md has the measured counts and rates. */
const PORTS =
  'vector operations: 30 to 39 per 32 elements cast to float8 or float4, and a core executes at most 4 per cycle'
const BANDWIDTH = 'one thread reads 19 to 22 GB/s and writes 17 GB/s; S reads and writes equal amounts'
const TWO_PASSES = 'two passes: the cast into the L2 cache, and the reorder of as many elements from there'
const CALLS_IN_CACHE =
  'L3 cache: our kernel is near M, and the peer is fastest where elements become narrower'
const PEER_COPIES = 'cache bandwidth: 10 times the rate of the peer for bfloat16 exceeds M'

const inOrder = ({ group, label }) => group !== 'fused' && label !== 'D'
const inGroup = (name) => (each) => each.group === name && inOrder(each)

const CLASSES = [
  {
    name: 'all casts',
    holds: inOrder,
    lines: [
      { against: 'M', at: ['L2'], pass: 0.45, limitedBy: PORTS },
      { against: 'M', at: ['L3'], pass: 0.7, limitedBy: PORTS },
      { against: 'S', at: ['DRAM'], pass: 0.85, limitedBy: BANDWIDTH },
      { against: 'onnxruntime', at: ANYWHERE, pass: 3, limitedBy: CALLS_IN_CACHE },
      { against: 'ml_dtypes', at: ANYWHERE, pass: 10, limitedBy: PEER_COPIES },
      { against: 'numpy', at: ANYWHERE },
      { against: 'float16.js', at: ANYWHERE },
    ],
  },
  {
    name: 'float32 <-> float16',
    holds: inGroup('float16'),
    lines: [
      { against: 'M', at: ['L2'], pass: 0.45, goal: 0.8 },
      { against: 'M', at: ['L3'], pass: 0.7, goal: 1 },
      { against: 'S', at: ['DRAM'], pass: 0.85, goal: 0.95, limitedBy: BANDWIDTH },
    ],
  },
  {
    name: 'float32 -> int8, uint8',
    holds: inGroup('to int8'),
    lines: [
      { against: 'M', at: ['L2'], pass: 0.45, goal: 0.8 },
      { against: 'M', at: ['L3'], pass: 0.9, goal: 1 },
      { against: 'S', at: ['DRAM'], pass: 0.85, goal: 0.95, limitedBy: BANDWIDTH },
    ],
  },
  {
    name: 'float32 <-> bfloat16',
    holds: inGroup('bfloat16'),
    lines: [
      { against: 'M', at: ['L2'], pass: 0.45, goal: 0.55 },
      { against: 'M', at: ['L3'], pass: 0.7, goal: 0.85 },
      { against: 'S', at: ['DRAM'], pass: 0.85, goal: 0.95, limitedBy: BANDWIDTH },
    ],
  },
  {
    name: 'float32 -> float8',
    holds: inGroup('to float8'),
    lines: [{ against: 'M', at: CACHES, goal: 0.4, limitedBy: PORTS }],
  },
  {
    name: 'float8 -> float32',
    holds: inGroup('from float8'),
    lines: [{ against: 'M', at: CACHES, goal: 0.5 }],
  },
  {
    name: '4 bits <-> 8 bits',
    holds: inGroup('4 bit'),
    lines: [{ against: 'M', at: CACHES, goal: 0.6 }],
  },
  {
    name: 'cast and layout in one pass',
    holds: ({ group }) => group === 'fused',
    lines: [{ against: 'layout alone', at: ANYWHERE, goal: 0.7, limitedBy: TWO_PASSES }],
  },
]

const RATIOS = {
  M: ({ tilework, memcpy }) => tilework / memcpy,
  S: ({ tilework, streaming }) => tilework / streaming,
  'layout alone': ({ tilework, layout }) => tilework / layout,
  onnxruntime: ({ inNode }) => inNode?.tilework / inNode?.onnxruntime,
  'float16.js': ({ inNode }) => inNode?.tilework / inNode?.float16,
  ml_dtypes: (result) => ratioToPython(result, 'ml_dtypes'),
  numpy: (result) => ratioToPython(result, 'numpy'),
}

/** NaN, which means not measured, where another library was timed. */
function ratioToPython({ tilework, python }, library) {
  return python?.library === library ? tilework / python.cast : Number.NaN
}

/** The worst case of every goal and all cases that missed it, one entry per thread count. */
export function castGoalResults(results) {
  const counts = [...new Set(results.map(({ threads }) => threads))]
  return CLASSES.flatMap(({ name, holds, lines }) =>
    lines.flatMap((line) =>
      counts.flatMap((threads) => {
        const cases = results.filter(
          (each) => holds(each) && each.threads === threads && line.at.includes(each.level),
        )
        return worstOf(name, line, threads, rated(cases, RATIOS[line.against]), castName)
      }),
    ),
  )
}
