// @ts-check
// The one bridge between the page and the main process; api.d.ts has its types.
const { contextBridge, ipcRenderer } = require('electron')

contextBridge.exposeInMainWorld('tensorFiles', {
  /** @returns {Promise<import('./api').Inspection | undefined>} */
  inspect: () => ipcRenderer.invoke('inspect'),
})
