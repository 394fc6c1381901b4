/**
 * What reorders have to reach, as data, and whether a run did. `pass` is the least that is accepted, `goal` what is aimed
 * at; both are the ratio of the worst case of a class. Ratios are to oneDNN, to memcpy (M), to the streaming copy (S) or
 * to our own rate on the shape that D is rounded to, all in the same run and on as many threads. `limitedBy` says what
 * holds a line back that is missed, as found with cachegrind, perf and counting (docs/performance.md).
 */
import { rated, worstOf } from './goals.mjs'
import { caseName } from './reorder_cases.mjs'

const READS =
  'F to planes: DRAM, 9 of 10 bytes are reads, of which a loop that does nothing else has 17 GB/s from one place and 25 from eight; of fsv32 float32 only every second line is read, 9 GB/s of lines'
const CORE =
  'B: the core; asking for lines earlier makes it slower, and strips of other lengths are no faster'
const PIXELS =
  'C: DRAM, a line of each plane is in a page of its own; asked for two lines ahead, into the second cache'
const ODD =
  'nhwc uint8: stores, each channel run of 19 bytes takes two, a quarter of them across lines; back, short columns'
const CROWDED =
  'L1: lines 4 KiB apart share a set, so both sides wait for L2; winograd fused: rows of 4 by columns of 8'
const SETS = 'to hwio and back: L2 and TLB, pieces of 512 bytes go to lines that share sets, a page each'
const STREAMS =
  'C: DRAM, out of a block of 16 or 32 images as many streams are written, 3 MB apart in float32'

const DRAM = ['DRAM']
const L3 = ['L3']
const L2 = ['L2']
const CACHES = ['L2', 'L3']
const ANYWHERE = ['L2', 'L3', 'DRAM']

/** The least extent of a feature axis that counts as many channels; below, pixels are interleaved. */
const MANY_CHANNELS = 16

const isWhole = ({ label }) => label !== 'D' && label !== 'R'
const hasManyChannels = ({ shape }) => shape[1] >= MANY_CHANNELS
const inGroup = (group, bits) => (each) => each.group === group && each.bits === bits && isWhole(each)
const nhwc = (bits, isMany) => (each) => inGroup('nhwc', bits)(each) && hasManyChannels(each) === isMany

/**
 * A class of cases and its lines. oneDNN moves float16 element by element, therefore 100; bfloat16 is left out there
 * because it has a kernel for it on CPUs with AVX-512.
 */
const CLASSES = [
  {
    name: 'plain <-> fsv4, 8, 16, 32; 32 bit',
    holds: inGroup('blocked', 32),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 1, goal: 1.1, limitedBy: READS },
      { against: 'oneDNN', at: DRAM, pass: 1.3, goal: 1.5, limitedBy: READS },
      // 0.6, not 0.8: the rows of A are 4 KiB apart, and share sets of the first cache.
      { against: 'M', at: L2, pass: 0.6, goal: 0.8 },
      { against: 'M', at: L3, pass: 0.9, goal: 0.95, limitedBy: CORE },
      { against: 'S', at: DRAM, pass: 0.9, goal: 0.95, limitedBy: READS },
    ],
  },
  {
    name: 'nchw <-> nhwc, C >= 16; 32 bit',
    holds: nhwc(32, true),
    lines: [
      { against: 'oneDNN', at: CACHES, pass: 1.8, goal: 2.5 },
      { against: 'oneDNN', at: DRAM, pass: 1.2, goal: 1.5 },
      { against: 'M', at: L3, pass: 0.8, goal: 0.85, limitedBy: CORE },
      { against: 'M', at: DRAM, pass: 0.85 },
      { against: 'S', at: DRAM, goal: 0.9, limitedBy: PIXELS },
    ],
  },
  {
    name: 'nchw <-> nhwc, C = 3 or 4; 32 bit',
    holds: nhwc(32, false),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 1.2, goal: 1.5 },
      { against: 'M', at: CACHES, pass: 0.9, goal: 0.95 },
      { against: 'S', at: DRAM, pass: 0.9, goal: 0.9 },
    ],
  },
  {
    name: 'nchw <-> nhwc, C = 3 or 4; 8 bit',
    holds: nhwc(8, false),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 3.5, goal: 6 },
      { against: 'M', at: ANYWHERE, pass: 0.7, goal: 0.8 },
    ],
  },
  {
    name: 'plain <-> fsv4, 8, 16, 32; 16 bit',
    holds: inGroup('blocked', 16),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, only: 'float16', pass: 100 },
      { against: 'M', at: L2, pass: 0.5, goal: 0.7 },
      { against: 'M', at: L3, pass: 0.8, goal: 0.85, limitedBy: CORE },
      { against: 'S', at: DRAM, pass: 0.9, goal: 0.85, limitedBy: READS },
    ],
  },
  {
    name: 'nchw <-> nhwc, C >= 16; 16 bit',
    holds: nhwc(16, true),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, only: 'float16', pass: 100 },
      { against: 'M', at: L2, pass: 0.5 },
      { against: 'M', at: L3, pass: 0.8, goal: 0.75, limitedBy: CORE },
      { against: 'S', at: DRAM, pass: 0.9, goal: 0.8, limitedBy: PIXELS },
    ],
  },
  {
    name: 'nchw <-> nhwc, C = 3 or 4; 16 bit',
    holds: nhwc(16, false),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, only: 'float16', pass: 100 },
      { against: 'M', at: CACHES, pass: 0.8, goal: 0.85 },
      { against: 'S', at: DRAM, pass: 0.9, goal: 0.8 },
    ],
  },
  {
    name: 'plain <-> fsv4, 8, 16, 32; 8 bit',
    holds: inGroup('blocked', 8),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 2.5, goal: 4, limitedBy: READS },
      { against: 'M', at: L2, pass: 0.4, goal: 0.5 },
      { against: 'M', at: L3, pass: 0.7, goal: 0.8 },
      { against: 'S', at: DRAM, pass: 0.8, goal: 0.85, limitedBy: READS },
    ],
  },
  {
    name: 'nchw <-> nhwc, C >= 16; 8 bit',
    holds: nhwc(8, true),
    lines: [
      { against: 'oneDNN', at: L2, threads: 'all', pass: 1.5, goal: 3 },
      { against: 'oneDNN', at: L2, threads: 1, pass: 2, goal: 3 },
      { against: 'oneDNN', at: ['L3', 'DRAM'], pass: 2, goal: 3 },
      { against: 'M', at: L2, pass: 0.25, goal: 0.5 },
      { against: 'M', at: L3, pass: 0.4, goal: 0.5 },
      { against: 'M', at: DRAM, pass: 0.6, goal: 0.7 },
    ],
  },
  {
    name: 'weights; 32 bit',
    holds: inGroup('weights', 32),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 1, goal: 1.2 },
      { against: 'M', at: ANYWHERE, pass: 0.5, goal: 0.6, limitedBy: SETS },
    ],
  },
  {
    name: 'weights; 8 bit',
    holds: inGroup('weights', 8),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 2.5, goal: 4 },
      { against: 'M', at: ANYWHERE, pass: 0.3, goal: 0.4 },
    ],
  },
  {
    name: 'odd shapes (D)',
    holds: ({ label }) => label === 'D',
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 1.2, goal: 1.5 },
      { against: 'round shape', at: ANYWHERE, pass: 0.7, goal: 0.8, limitedBy: ODD },
    ],
  },
  {
    name: 'block to block',
    holds: ({ group }) => group === 'block to block',
    lines: [{ against: 'M', at: ANYWHERE, goal: 0.8, limitedBy: STREAMS }],
  },
  {
    name: 'identity',
    holds: ({ group }) => group === 'identity',
    lines: [{ against: 'M or S, the faster', at: ANYWHERE, pass: 0.95 }],
  },
  {
    name: 'all of these',
    holds: ({ group }) => group !== 'every layout',
    lines: [{ against: 'oneDNN', at: ANYWHERE, pass: 1 }],
  },
  {
    name: 'all 141 layouts from and to row_major, 1 MiB; 32 bit',
    holds: ({ group }) => group === 'every layout',
    lines: [{ against: 'M', at: ANYWHERE, goal: 0.25, limitedBy: CROWDED }],
  },
]

const RATIOS = {
  oneDNN: ({ tilework, onednn }) => tilework / onednn,
  M: ({ tilework, memcpy }) => tilework / memcpy,
  S: ({ tilework, streaming }) => tilework / streaming,
  'M or S, the faster': ({ tilework, memcpy, streaming }) => tilework / Math.max(memcpy, streaming),
  'round shape': ({ tilework, rounded }) => tilework / rounded,
}

/**
 * The worst case of every line and all that missed it, one entry a number of threads; lines without a measured case are
 * left out.
 * @param {readonly object[]} results - of one run, as bench/reorder.mjs makes them
 */
export function reached(results) {
  const counts = [...new Set(results.map(({ threads }) => threads))]
  const withRounded = results.map((result) => ({ ...result, rounded: rateOfRounded(result, results) }))
  return CLASSES.flatMap(({ name, holds, lines }) => {
    const members = withRounded.filter(holds)
    return lines.flatMap((line) =>
      counts
        .filter((threads) => appliesTo(line, threads))
        .flatMap((threads) => {
          const cases = members.filter((each) => each.threads === threads && appliesToCase(line, each))
          return worstOf(name, line, threads, rated(cases, RATIOS[line.against]), caseName)
        }),
    )
  })
}

function appliesTo({ threads }, count) {
  return threads === undefined || (threads === 'all') === count > 1
}

function appliesToCase({ at, only }, { level, dtype }) {
  return at.includes(level) && (only === undefined || only === dtype)
}

function rateOfRounded({ label, threads, ...odd }, results) {
  if (label !== 'D') return undefined
  return results.find(
    (each) => each.threads === threads && caseName(each) === caseName({ ...odd, label: 'R' }),
  )?.tilework
}
