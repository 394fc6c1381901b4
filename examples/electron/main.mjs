// The main process: a window, and a utility process that opens files. Kernels and disks never block the window.
import { join } from 'node:path'
import { app, BrowserWindow, dialog, ipcMain, utilityProcess } from 'electron'

/** Requests that wait for the utility process, by number. */
const waiting = new Map()
let worker
let requests = 0

function request(message) {
  return new Promise((resolve, reject) => {
    waiting.set(++requests, { resolve, reject })
    worker.postMessage({ ...message, number: requests })
  })
}

function startWorker() {
  worker = utilityProcess.fork(join(import.meta.dirname, 'worker.mjs'))
  worker.on('message', ({ number, result, error }) => {
    const { resolve, reject } = waiting.get(number)
    waiting.delete(number)
    if (error) reject(new Error(error))
    else resolve(result)
  })
  worker.on('exit', () => {
    for (const { reject } of waiting.values()) reject(new Error('The process that reads files has ended.'))
    waiting.clear()
  })
}

// Only the main process chooses paths: a page must not name files.
ipcMain.handle('inspect', async () => {
  const { filePaths } = await dialog.showOpenDialog({ properties: ['openFile'] })
  return filePaths.length === 0 ? undefined : request({ kind: 'inspect', path: filePaths[0] })
})

await app.whenReady()
startWorker()
const window = new BrowserWindow({
  webPreferences: {
    preload: join(import.meta.dirname, 'preload.cjs'),
    contextIsolation: true,
    sandbox: true,
  },
})
await window.loadFile('index.html')
app.on('window-all-closed', () => app.quit())
