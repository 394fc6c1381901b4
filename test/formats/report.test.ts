/** How findings are kept, worded and bounded, for all formats. */
import { expect, it } from 'vitest'
import { MAX_FINDINGS, Report } from '../../lib/formats/report.js'

it('omitted findings are counted and never worded', () => {
  const report = new Report('btf', 'lenient', 'collect')
  let worded = 0
  const message = () => `number ${++worded}.`
  const place = () => ({ path: `tensors[${worded}]`, offset: worded })
  for (let index = 0; index < 3 * MAX_FINDINGS; index++) report.deviation('ERR_OVERLAP', message, place)
  expect(worded).toBe(MAX_FINDINGS)
  expect(report.findings().at(-1)).toMatchObject({
    severity: 'warning',
    code: 'ERR_LIMIT',
    message: expect.stringContaining(`${2 * MAX_FINDINGS} more findings (0 of them errors) are omitted`),
  })
})

it('an omitted error makes the last finding an error', () => {
  const report = new Report('btf', 'lenient', 'collect')
  for (let index = 0; index < MAX_FINDINGS; index++) report.note('ERR_GAP', 'A gap.', { path: '', offset: 0 })
  report.broken('ERR_RANK', 'A rank.', { path: 'tensors[0].rank', offset: 8 })
  expect(report.findings().at(-1)).toMatchObject({ severity: 'error', code: 'ERR_LIMIT' })
})

it('a report that throws words the one finding it throws', () => {
  const report = new Report('btf', 'strict', 'throw').forPart('a.btf')
  const deviate = () =>
    report.deviation(
      'ERR_GAP',
      () => 'A gap.',
      () => ({ path: 'padding', offset: 3 }),
    )
  expect(deviate).toThrow(
    expect.objectContaining({
      code: 'ERR_GAP',
      message: 'a.btf: A gap.',
      path: 'a.btf: padding',
      offset: 3,
      format: 'btf',
    }),
  )
})
