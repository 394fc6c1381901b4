/** The table of passes in docs/onnx.md. */
import { test } from 'vitest'
import { PASSES } from '../../lib/models/onnx_optimize/optimize.js'
import { expectGeneratedTable } from './generated_table.js'

test('docs/onnx.md has the passes of optimize in their order', () => {
  const rows = PASSES.map(({ name, description, runs }) => {
    const mark = runs ? ' *' : ''
    return `| \`${name}\`${mark} | ${description} |`
  })
  const table = ['| pass | what it does |', '|---|---|', ...rows].join('\n')
  expectGeneratedTable('docs/onnx.md', '<!-- passes -->', '<!-- end of passes -->', table)
})
