/**
 * Draws the jobs of docs/performance.md, its first table, as docs/performance.svg: `node scripts/performance_plot.mjs`. With
 * `--check` it only compares, which a test does. vega renders without a browser.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, View } from 'vega'
import { compile } from 'vega-lite'
import { smallSvg } from './small_svg.mjs'
import { fail, ROOT } from './toolchain.mjs'

const PAGE = join(ROOT, 'docs', 'performance.md')
const PICTURE = join(ROOT, 'docs', 'performance.svg')

const drawn = await new View(parse(compile(specification(jobs())).spec), { renderer: 'none' }).toSVG()
const made = `${smallSvg(drawn)}\n`
if (!process.argv.includes('--check')) writeFileSync(PICTURE, made)
else if (made !== readFileSync(PICTURE, 'utf8')) {
  fail('docs/performance.svg differs from its table; run "node scripts/performance_plot.mjs".')
}

/** Rows of the table "job | tilework | the usual way | times as fast". */
function jobs() {
  const [table] =
    /(?:^\|.*\n)+/m.exec(readFileSync(PAGE, 'utf8')) ?? fail('docs/performance.md has no table.')
  return table
    .trim()
    .split('\n')
    .slice(2)
    .map((row) => row.split('|').map((cell) => cell.trim()))
    .map(([, job, , usual, times]) => ({ job, usual, times: Number(times) }))
}

function specification(values) {
  const job = { field: 'job', type: 'nominal', sort: null, title: null }
  // A logarithmic scale has no zero for bars to begin at.
  const [least, most] = [0.5, 300]
  const scale = { type: 'log', domain: [least, most] }
  const times = { field: 'times', type: 'quantitative', scale, axis: { values: [1, 10, 100] }, title: null }
  return {
    background: 'white',
    config: { axis: { labelLimit: 1000, labelFontSize: 12 } },
    data: { values },
    width: 420,
    height: { step: 22 },
    layer: [
      { mark: 'bar', encoding: { y: job, x: times, x2: { datum: least } } },
      {
        mark: { type: 'text', align: 'left', dx: 4 },
        encoding: { y: job, x: times, text: { field: 'times', type: 'quantitative' } },
      },
    ],
  }
}
