/** Nothing is ever sent anywhere: no socket is opened unless a caller passes a URL. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { asTensor, save } from '../../lib/index.js'
import { ADDON } from '../native/run_script.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-network-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Counts sockets and look-ups of names in a process that loads it first, and prints the number at the end. */
const COUNTER = `
  import dgram from 'node:dgram'
  import dns from 'node:dns'
  import net from 'node:net'
  import { syncBuiltinESMExports } from 'node:module'
  let count = 0
  const counted = (owner, name) => {
    const original = owner[name]
    owner[name] = function (...args) { count++; return Reflect.apply(original, this, args) }
  }
  counted(net.Socket.prototype, 'connect')
  counted(net.Server.prototype, 'listen')
  counted(dgram, 'createSocket')
  counted(dns, 'lookup')
  syncBuiltinESMExports()
  process.on('exit', () => console.error('sockets: ' + count))
`

it.each([
  [
    'the counter counts',
    ['-e', "require('node:net').connect({ host: '127.0.0.1', port: 1 }).on('error', () => {})"],
    1,
  ],
  ['inspect', ['dist/cli/main.js', 'inspect', join(folder, 'x.npy')], 0],
  ['convert', ['dist/cli/main.js', 'convert', join(folder, 'x.npy'), join(folder, 'y.safetensors')], 0],
  ['devices', ['dist/cli/main.js', 'devices'], 0],
])('%s', async (_, args, expected) => {
  await save(join(folder, 'x.npy'), [asTensor(new Uint8Array(8), { name: 'x', shape: [8] })])
  const counter = join(folder, 'counter.mjs')
  writeFileSync(counter, COUNTER)
  const { stderr } = await promisify(execFile)(process.execPath, [
    '--import',
    String(pathToFileURL(counter)),
    ...args,
  ])
  expect(stderr).toContain(`sockets: ${expected}`)
})

it.skipIf(process.platform !== 'linux')('the addon imports no function of sockets', () => {
  const names = readFileSync(ADDON).toString('latin1').split('\0')
  expect(names).toContain('pread')
  expect(names.filter((name) => /^(socket|connect|getaddrinfo|sendto|bind)$/.test(name))).toEqual([])
})
