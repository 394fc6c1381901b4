/** Names that an error suggests for a mistyped one. */
import { expect, it } from 'vitest'
import { expectedText, nearestNames, nearestText } from '../lib/nearest_names.js'

const LAYOUTS = ['b_fs_yx_fsv2', 'b_fs_yx_fsv4', 'b_fs_yx_fsv16', 'b_fs_yx_fsv32', 'bs_fs_yx_bsv16_fsv16']

it.each([
  ['b_fs_yx_fsv61', 'b_fs_yx_fsv16'],
  ['b_sf_yx_fsv16', 'b_fs_yx_fsv16'],
  ['B_FS_YX_FSV4', 'b_fs_yx_fsv4'],
  ['b_fs_yx_fsv3', 'b_fs_yx_fsv32'],
])('%s is %s', (name, nearest) => {
  expect(nearestNames(name, LAYOUTS)[0]).toBe(nearest)
})

it('counts two neighbours that changed places as one edit, and characters apart as two', () => {
  expect(nearestNames('cahnnel', ['channel', 'cahnn'])).toEqual(['channel', 'cahnn'])
  expect(nearestNames('ba', ['ab'])).toEqual(['ab'])
  expect(nearestNames('lechann', ['channel'])).toEqual(['channel'])
  expect(nearestNames('abcd', ['dcba'])).toEqual([])
})

it('advice names up to three', () => {
  expect(nearestText('w', ['bias', 'x'])).toBe('.')
  expect(nearestText('we', ['weight'])).toBe('; did you mean "weight"?')
  const known = ['w.a', 'w.b', 'w.c', 'w.d']
  expect(nearestText('w.', known.slice(0, 2))).toBe('; did you mean "w.a" or "w.b"?')
  expect(nearestText('w.', known)).toBe('; did you mean "w.a", "w.b" or "w.c"?')
})

it('lists of up to six names are shown whole, of longer ones the nearest', () => {
  const six = ['one', 'two', 'three', 'four', 'five', 'six']
  expect(expectedText('thre', six)).toBe('; expected one of: one, two, three, four, five, six.')
  expect(expectedText('thre', [...six, 'seven'])).toBe('; did you mean "three"?')
  const whole = '; expected one of: one, two, three, four, five, six, seven.'
  expect(expectedText('quaternion', [...six, 'seven'])).toBe(whole)
  expect(expectedText(7, [...six, 'seven'])).toBe(whole)
})
