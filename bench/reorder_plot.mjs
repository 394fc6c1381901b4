/**
 * Draws results of `npm run bench -- reorder` as an SVG file: one panel per shape and element type, one group of bars per
 * pair of layouts. vega renders it without a browser.
 */
import { writeFileSync } from 'node:fs'
import { parse, View } from 'vega'
import { compile } from 'vega-lite'
import { smallSvg } from '../scripts/small_svg.mjs'

const SERIES = ['tilework', 'oneDNN', 'streaming copy']
const COLOURS = ['#1f77b4', '#ff7f0e', '#c7c7c7']
const GROUPS = ['nhwc', 'blocked']
const SHAPES = ['A', 'B', 'C', 'D', 'E', 'F']
const DTYPES = ['float32', 'uint8']
/** Longer bars are clipped: only DRAM cases of the streaming copy and tilework exceed this. */
const MAX_RATIO = 2

/** @param {readonly object[]} results - results of one run; the ones with the fewest threads are drawn */
export async function plotReorders(results, path) {
  const threads = Math.min(...results.map((each) => each.threads))
  const drawn = results.filter(
    (each) =>
      each.threads === threads &&
      GROUPS.includes(each.group) &&
      SHAPES.includes(each.label) &&
      DTYPES.includes(each.dtype),
  )
  const { spec } = compile(specification(drawn.flatMap(bars), threads))
  writeFileSync(path, `${smallSvg(await new View(parse(spec), { renderer: 'none' }).toSVG())}\n`)
}

function bars({ from, to, label, dtype, tilework, memcpy, streaming, onednn }) {
  const rates = { tilework, oneDNN: onednn, 'streaming copy': streaming }
  return SERIES.filter((series) => rates[series] !== undefined).map((series) => ({
    pair: `${shortName(from)} → ${shortName(to)}`,
    label,
    dtype,
    series,
    ratio: rates[series] / memcpy,
  }))
}

/** `b_fs_yx_fsv16` is `fsv16`, as in the tables. */
function shortName(layout) {
  return layout.replace('b_fs_yx_', '')
}

function specification(values, threads) {
  return {
    background: 'white',
    title: `Rate as a ratio to memcpy of the same bytes, ${threads} ${threads === 1 ? 'thread' : 'threads'}`,
    data: { values },
    facet: {
      column: { field: 'label', type: 'nominal', sort: SHAPES, title: 'shape' },
      row: { field: 'dtype', type: 'nominal', sort: DTYPES, title: null },
    },
    spec: {
      width: 120,
      height: { step: 6 },
      mark: { type: 'bar', clip: true },
      encoding: {
        y: { field: 'pair', type: 'nominal', sort: null, title: null },
        yOffset: { field: 'series', sort: SERIES },
        x: {
          field: 'ratio',
          type: 'quantitative',
          title: 'ratio to memcpy',
          scale: { domain: [0, MAX_RATIO] },
          axis: {
            tickCount: 4,
            gridColor: { condition: { test: 'datum.value === 1', value: 'black' }, value: '#ddd' },
          },
        },
        color: { field: 'series', title: null, scale: { domain: SERIES, range: COLOURS } },
      },
    },
  }
}
