/** Names that Windows takes for something else; tilework refuses them there in files that others wrote. */
import { describe, expect, it } from 'vitest'
import { checkSiblingName } from '../../lib/bytes/sibling.js'
import { isForbiddenOnWindows, withSlashes } from '../../lib/bytes/windows_names.js'

const FORBIDDEN = [
  ...[
    'CON',
    'con',
    'nul',
    'NUL.bin',
    'aux.tar.gz',
    'PRN',
    'com1',
    'COM9.data',
    'lpt0',
    'COM\u00b9',
    'con .txt',
    'CONIN$',
  ],
  ...[
    'a.bin:b',
    'a.bin::$DATA',
    'weights.',
    'weights ',
    'weights. ',
    '...',
    'a*',
    'a?',
    'a<b',
    'a>b',
    'a"b',
    'a|b',
  ],
  ...['a\0b', 'a\tb', 'a\u001fb'],
]
const ALLOWED = [
  'a.bin',
  'console',
  'com10',
  'com',
  'lpt',
  'nuls',
  'auxiliary.bin',
  'a.con',
  '.hidden',
  'a b.c',
  'Grüße 🦊',
  'a..b',
]

describe('names of external data on Windows', () => {
  it.each(FORBIDDEN)('%j is refused', (name) => {
    expect(isForbiddenOnWindows(name)).toBe(true)
    for (const path of [name, `folder/${name}`, `folder\\${name}`, `${name}/a.bin`]) {
      expect(() => checkSiblingName(path, true)).toThrow(
        /cannot be opened on Windows|must be a plain relative path/,
      )
    }
  })

  it.each(ALLOWED)('%j is a file', (name) => {
    expect(isForbiddenOnWindows(name)).toBe(false)
    expect(() => checkSiblingName(name, true)).not.toThrow()
  })

  it('elsewhere such names are files', () => {
    for (const name of ['CON', 'onnx::MatMul_1', 'weights.']) {
      expect(() => checkSiblingName(name, false)).not.toThrow()
    }
  })
})

it('a manifest has slashes', () => {
  expect(withSlashes('a\\b\\c.btf')).toBe('a/b/c.btf')
})
