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
const PIECES =
  'B: where the pieces lie: loads and stores of the same pieces without a transpose reach 0.67 (nhwc) and 0.75 (fsv16) of M, of 16 bits 0.60 to 0.71 and 0.88 (`npm run bench -- access`)'
const ROWS =
  'A: rows 4 KiB apart share a set: loads and stores of the same pieces without a transpose reach 0.46 to 0.58 of M (`npm run bench -- access`)'
const STACK =
  'registers: 16 rows of bytes take all of them, and those that go by the stack run at one of two rates, from process to process'
const HOLES =
  'W7: 3 of 8 or 16 inputs are there, so most lines are zeros that a few elements are written into'
const PIXELS =
  'C: DRAM, a line of each plane is in a page of its own; asked for two lines ahead, into the second cache'
const ODD =
  'nhwc uint8: one store of 32 bytes for each pixel of 19, half of them across lines, and 64 shuffles for 16 pixels; back, 32 loads for the last 3 channels'
const CROWDED =
  'L1: lines 4 KiB apart share a set, so both sides wait for L2; winograd fused: rows of 4 by columns of 8'
const SETS = 'to hwio and back: L2 and TLB, pieces of 512 bytes go to lines that share sets, a page each'
const STREAMS =
  'C: DRAM, blocks of 16 images to planes and back: 256 planes, each in pages of its own, are read or written in turn'
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
      { against: 'M', at: L2, pass: 0.6, goal: 0.8, limitedBy: ROWS },
      { against: 'M', at: L3, pass: 0.9, goal: 0.95, limitedBy: PIECES },
      { against: 'S', at: DRAM, pass: 0.9, goal: 0.95, limitedBy: READS },
    ],
  },
  {
    name: 'nchw <-> nhwc, C >= 16; 32 bit',
    holds: nhwc(32, true),
    lines: [
      { against: 'oneDNN', at: CACHES, pass: 1.8, goal: 2.5 },
      { against: 'oneDNN', at: DRAM, pass: 1.2, goal: 1.5 },
      { against: 'M', at: L3, pass: 0.8, goal: 0.85, limitedBy: PIECES },
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
      { against: 'M', at: L2, pass: 0.5, goal: 0.7, limitedBy: ROWS },
      { against: 'M', at: L3, pass: 0.8, goal: 0.85, limitedBy: PIECES },
      { against: 'S', at: DRAM, pass: 0.9, goal: 0.85, limitedBy: READS },
    ],
  },
  {
    name: 'nchw <-> nhwc, C >= 16; 16 bit',
    holds: nhwc(16, true),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, only: 'float16', pass: 100 },
      { against: 'M', at: L2, pass: 0.5 },
      { against: 'M', at: L3, pass: 0.8, goal: 0.75, limitedBy: PIECES },
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
      { against: 'M', at: L2, pass: 0.4, goal: 0.5, limitedBy: STACK },
      { against: 'M', at: L3, pass: 0.7, goal: 0.8, limitedBy: STACK },
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
      { against: 'oneDNN', at: ANYWHERE, pass: 1, goal: 1.2, limitedBy: HOLES },
      { against: 'M', at: ANYWHERE, pass: 0.5, goal: 0.6, limitedBy: SETS },
    ],
  },
  {
    name: 'weights; 8 bit',
    holds: inGroup('weights', 8),
    lines: [
      { against: 'oneDNN', at: ANYWHERE, pass: 2.5, goal: 4, limitedBy: HOLES },
      { against: 'M', at: ANYWHERE, pass: 0.3, goal: 0.4, limitedBy: HOLES },
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
