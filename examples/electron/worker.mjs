// The utility process: Node with the addon. Electron shares no memory between the addon and JavaScript, so bytes that reach
// JavaScript are copies; this program asks for few of them.
import { inspect } from './inspect.mjs'

process.parentPort.on('message', async ({ data: { number, path } }) => {
  try {
    process.parentPort.postMessage({ number, result: await inspect(path) })
  } catch (error) {
    process.parentPort.postMessage({ number, error: error.message })
  }
})
