/** Paths that lead to no ordinary file: each call ends in a TileworkError or a result, and waits for nobody. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { check, type OpenOptions, open, save, TileworkError, tensor } from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const server = createServer()
beforeAll(async () => {
  for (const name of ['pipe.onnx', 'pipe.npy']) execFileSync('mkfifo', [inFolder(name)])
  mkdirSync(inFolder('folder.npz'))
  writeFileSync(inFolder('empty.safetensors'), '')
  symlinkSync('loop.npy', inFolder('loop.npy'))
  symlinkSync('/proc/self/mem', inFolder('memory.onnx'))
  await new Promise<void>((resolve) => server.listen(inFolder('socket.btf'), resolve))
})
afterAll(() => server.close())

const INSIDE = 'pipe.onnx pipe.npy socket.btf loop.npy empty.safetensors folder.npz memory.onnx .'.split(' ')
const DEVICES = ['zero', 'null', 'random', 'full', 'tty'].map((name) => `/dev/${name}`)
const INPUT = ['/dev/stdin', '/proc/self/fd/0']
const PROC = ['self/maps', 'self/mem', 'self/pagemap', 'cpuinfo', 'kmsg', 'sys/kernel/random/uuid']
const TEXTS = ['', '\0', 'a\0b', `/${'x'.repeat(5000)}`, '~', '.']
const paths = (): string[] => [
  ...INSIDE.map((name) => inFolder(name)),
  ...DEVICES,
  ...INPUT,
  ...PROC.map((name) => `/proc/${name}`),
  ...TEXTS,
]

const CHOICES: readonly OpenOptions[] = [
  {},
  { mode: 'read' },
  { guard: true },
  { format: 'onnx' },
  { format: 'npy', mode: 'read' },
]

const refusal = async (call: () => Promise<unknown>): Promise<unknown> => {
  try {
    const result = (await call()) as { close?: () => void } | undefined
    result?.close?.()
    return 'done'
  } catch (error) {
    return error instanceof TileworkError && error.code !== 'ERR_INTERNAL' ? 'refused' : error
  }
}

describe.skipIf(process.platform !== 'linux')('odd files', () => {
  it.each(['open', 'check'] as const)('%s', { timeout: 60_000 }, async (name) => {
    for (const path of paths())
      for (const options of CHOICES) {
        const outcome = await refusal(() => (name === 'open' ? open(path, options) : check(path, options)))
        expect(['done', 'refused'], `${path} ${JSON.stringify(options)}`).toContain(outcome)
      }
  })

  it('save replaces no pipe, device, folder or socket', { timeout: 60_000 }, async () => {
    const ones = tensor(new Float32Array([1, 2]), { shape: [2] })
    const targets = [
      ...INSIDE.filter((name) => !/loop|empty/.test(name)).map((name) => inFolder(name)),
      ...DEVICES,
    ]
    for (const path of [...targets, '/proc/self/mem', '/proc/cpuinfo'])
      expect(await refusal(() => save(path, [ones], { format: 'npy' })), path).toBe('refused')
    expect(readlinkSync(inFolder('memory.onnx'))).toBe('/proc/self/mem')
  })
})
