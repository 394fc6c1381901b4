#!/usr/bin/env node
/**
 * Replaces node-gyp for prebuildify, which calls `node-gyp rebuild --target=V --devdir=D --arch=A --release` and takes the
 * addon out of `build/Release`. cmake compiles only what changed there. The version of Node and the folder of its headers do
 * not matter to a Node-API addon, and prebuildify is asked for no processor but this machine's.
 */
import { fail } from './toolchain.mjs'

const [command] = process.argv.slice(2)
if (command !== 'rebuild') fail(`unknown command "${command}" of node-gyp; expected: rebuild`)
await import('./build_native.mjs')
