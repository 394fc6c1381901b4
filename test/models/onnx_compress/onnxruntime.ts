/** The package onnxruntime-node, where it is installed: in the folder that TILEWORK_ONNXRUNTIME names, or in the checkout. */
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { OnnxRuntime } from '../../../lib/onnx.js'

interface Session {
  readonly inputNames: readonly string[]
  readonly outputNames: readonly string[]
  run(
    feeds: Readonly<Record<string, unknown>>,
  ): Promise<Readonly<Record<string, { readonly data: Float32Array }>>>
}

export interface Runtime extends OnnxRuntime {
  readonly Tensor: new (type: string, data: unknown, shape: readonly number[]) => unknown
  readonly InferenceSession: OnnxRuntime['InferenceSession'] & {
    create(model: string | Uint8Array, options?: object): Promise<Session>
  }
}

async function load(): Promise<Runtime | undefined> {
  const folder = process.env.TILEWORK_ONNXRUNTIME ?? '.'
  try {
    const path = createRequire(resolve(folder, 'package.json')).resolve('onnxruntime-node')
    return ((await import(pathToFileURL(path).href)) as { readonly default: Runtime }).default
  } catch {
    console.log(
      `left out: onnxruntime-node is not installed in ${folder}; TILEWORK_ONNXRUNTIME names its folder`,
    )
    return undefined
  }
}

export const runtime = await load()
