import { expect, it } from 'vitest'
import { listText } from '../../lib/view/page/layout/choice.js'

it.each([
  ['2,19,3,4', '2,19,3,4'],
  ['[2, 19, 3, 4]', '2,19,3,4'],
  [' (2,19 , 3,4) ', '2,19,3,4'],
  ['2 19  3 4', '2,19,3,4'],
  ['2x19×3x4', '2,19,3,4'],
  ['7', '7'],
  ['[]', ''],
  ['', ''],
  // Not a list: the server says what is wrong with it.
  ['2,-1', '2,-1'],
  ['2,,3', '2,,3'],
])('reads the list %j', (text, list) => {
  expect(listText(text)).toBe(list)
})
