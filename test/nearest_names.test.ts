/** Names that an error suggests for a mistyped one. */
import { expect, it } from 'vitest'
import { nearestNames } from '../lib/nearest_names.js'

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
