/** Runs ONNX models in onnxruntime, through one Python process for all of them. */
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { arraysOf } from './compare.mjs'

export class OnnxRuntime {
  #process
  #lines

  /** @param python - an interpreter that has numpy and onnxruntime */
  constructor(python = 'python3') {
    const program = join(import.meta.dirname, 'run_onnx.py')
    this.#process = spawn(python, [program], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]()
  }

  /** @param inputs - paths of .npy files by name. @returns the paths of the outputs, or why there are none */
  async run(model, inputs, out) {
    mkdirSync(out, { recursive: true })
    this.#process.stdin.write(`${JSON.stringify({ model, inputs, out })}\n`)
    const { value, done } = await this.#lines.next()
    if (done) return { problem: 'Python with onnxruntime ended; name one that has it with --python' }
    const { error } = JSON.parse(value)
    return error === undefined ? { outputs: arraysOf(out, 'out') } : { problem: `onnxruntime: ${error}` }
  }

  close() {
    this.#process.stdin.end()
  }
}
