/**
 * What casts have to reach, as data, and whether a run did: `pass` is the least that is accepted, `goal` what is aimed
 * at, both the ratio of the worst case to memcpy (M), to the streaming copy (S), to the same layout without a cast, or to
 * another library, in the same run. `limitedBy` says what holds a line back that is missed (docs/performance.md).
 */
import { castName } from './cast_cases.mjs'
import { rated, worstOf } from './goals.mjs'

const ANYWHERE = ['L2', 'L3', 'DRAM']
const CACHES = ['L2', 'L3']

/** What holds lines back; docs/performance.md has the counts and rates behind it. */
const PORTS =
  'vector operations: 30 to 39 for 32 elements that become float8 or float4, of which a core does 4 a cycle at most'
const ONE_SIDE = 'one thread reads 19 to 22 GB/s and streams 17; S does as much of both'
const TWO_PASSES =
  'the time of both: the cast into the second cache, and the moves of as many elements from there'
const CALLS_IN_CACHE =
  'the third cache: our kernel runs near M, and the peer is at its best where elements get narrower'
const PEER_COPIES = 'the cache: 10 times the rate of the peer for bfloat16 is more than M'

const inOrder = ({ group, label }) => group !== 'fused' && label !== 'D'
const inGroup = (name) => (each) => each.group === name && inOrder(each)

const CLASSES = [
  {
    name: 'all casts',
    holds: inOrder,
    lines: [
      { against: 'M', at: ['L2'], pass: 0.45, limitedBy: PORTS },
      { against: 'M', at: ['L3'], pass: 0.7, limitedBy: PORTS },
      { against: 'S', at: ['DRAM'], pass: 0.85, limitedBy: ONE_SIDE },
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
      { against: 'S', at: ['DRAM'], pass: 0.85, goal: 0.95, limitedBy: ONE_SIDE },
    ],
  },
  {
    name: 'float32 -> int8, uint8',
    holds: inGroup('to int8'),
    lines: [
      { against: 'M', at: ['L2'], pass: 0.45, goal: 0.8 },
      { against: 'M', at: ['L3'], pass: 0.9, goal: 1 },
      { against: 'S', at: ['DRAM'], pass: 0.85, goal: 0.95, limitedBy: ONE_SIDE },
    ],
  },
  {
    name: 'float32 <-> bfloat16',
    holds: inGroup('bfloat16'),
    lines: [
      { against: 'M', at: ['L2'], pass: 0.45, goal: 0.55 },
      { against: 'M', at: ['L3'], pass: 0.7, goal: 0.85 },
      { against: 'S', at: ['DRAM'], pass: 0.85, goal: 0.95, limitedBy: ONE_SIDE },
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

/** NaN, which counts as not measured, where the cast is another library's. */
function ratioToPython({ tilework, python }, library) {
  return python?.library === library ? tilework / python.cast : Number.NaN
}

/** The worst case of every line and all that missed it, an entry a number of threads. */
export function castsReached(results) {
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
