#!/usr/bin/env node
/**
 * Replaces node-gyp for prebuildify, which can only call `node-gyp rebuild --target=V --devdir=D
 * --arch=A --release|--debug`; cmake-js needs the architecture and the configuration. The version of Node and the
 * folder of its headers do not matter to a Node-API addon, which is built against node-api-headers.
 */
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildOrExit } from './build_progress.mjs'
import { jobs, requireTools } from './toolchain.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: { arch: { type: 'string' }, debug: { type: 'boolean' } },
})
if (positionals[0] !== 'rebuild') {
  console.error(`unknown command "${positionals.join(' ')}" of node-gyp; expected: rebuild`)
  process.exit(1)
}
requireTools()

const cmakeJs = join(
  dirname(createRequire(import.meta.url).resolve('cmake-js/package.json')),
  'bin',
  'cmake-js',
)
const args = [cmakeJs, 'rebuild', '--parallel', String(jobs())]
if (typeof values.arch === 'string') args.push('--arch', values.arch)
if (values.debug === true) args.push('--debug')
await buildOrExit('Building the binary to ship', process.execPath, args)
