/** Programs and libraries that are measured beside tilework: sharp, and a Python program that answers a line with a line. */
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

/** sharp from the node_modules of a folder; undefined where it is not installed. */
export async function sharpIn(folder) {
  try {
    const path = createRequire(join(folder, 'package.json')).resolve('sharp')
    const { default: sharp } = await import(pathToFileURL(path).href)
    // It would return the result of an equal call before.
    sharp.cache(false)
    return sharp
  } catch (error) {
    console.error(`sharp is skipped: ${error.code ?? error.message}.`)
    return undefined
  }
}

/** A process that answers a line with a line; `ask` gives undefined where it ended. `name` is what it measures. */
export function pythonIn(python, script, name) {
  const child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (text) => {
    complaint += text
  })
  child.stdin.on('error', () => undefined)
  child.on('error', (error) => {
    complaint = error.message
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let isEnded = false
  const ask = async (given) => {
    if (isEnded) return undefined
    child.stdin.write(`${JSON.stringify(given)}\n`)
    const { value } = await lines.next()
    if (value !== undefined) return JSON.parse(value)
    isEnded = true
    console.error(`${name} is skipped: ${complaint.trim().split('\n').at(-1)}`)
    return undefined
  }
  return { ask, end: () => child.stdin.end() }
}
