// Reorders the first tensor of a file to b_fs_yx_fsv16, saves it, and restores it.
// node examples/reorder_file.mjs sample.btf blocked.btf; `npm run demo` of a checkout makes demo/sample.btf.
import { asLayout, open, reorder, save } from 'tilework'

const [path = 'demo/sample.btf', blockedPath = 'demo/blocked.btf'] = process.argv.slice(2)

const file = await open(path)
const plain = file.tensors.at(0)
console.log(`${plain.name}: ${plain.dtype} [${plain.shape}], ${plain.storage.byteLength} bytes`)

const blocked = reorder(plain, 'b_fs_yx_fsv16')
await save(blockedPath, [blocked])
console.log(`as ${blocked.storage.layout}: ${blocked.storage.byteLength} bytes, padding is zero`)

const again = await open(blockedPath)
const restored = reorder(asLayout(again.tensors.at(0), 'b_fs_yx_fsv16', plain.shape), 'row_major')
const same = Buffer.compare(await restored.bytes(), await plain.bytes()) === 0
console.log(same ? 'restored byte for byte' : 'the restored tensor differs')

again.close()
file.close()
process.exitCode = same ? 0 : 1
