/**
 * Runs one benchmark: `npm run bench -- NAME [options]`. Results are ratios within one run, and each candidate's best of
 * several interleaved rounds, because machines are shared and clock rates vary. Build first: `npm run build:all`.
 */
import { Command } from 'commander'
import { addAccess } from './access.mjs'
import { addCalls } from './calls.mjs'
import { addCast } from './cast.mjs'
import { addCompress } from './compress.mjs'
import { addDiff } from './diff.mjs'
import { addGguf } from './gguf.mjs'
import { addImage } from './image.mjs'
import { addMany } from './many.mjs'
import { addOnnx } from './onnx.mjs'
import { addOnnxSpeeds } from './onnx_speeds.mjs'
import { addOpencl } from './opencl.mjs'
import { addQueue } from './queue.mjs'
import { addRemote } from './remote.mjs'
import { addReorder } from './reorder.mjs'
import { addReorderBuilds } from './reorder_builds.mjs'
import { addResize } from './resize.mjs'
import { addSimplify } from './simplify.mjs'
import { addStartup } from './startup.mjs'
import { addStreaming } from './streaming.mjs'
import { addTmfile } from './tmfile.mjs'
import { addTmfileOpen } from './tmfile_open.mjs'
import { addView } from './view.mjs'
import { addWindows } from './windows.mjs'

const program = new Command('npm run bench --')
  .description('Compares tilework with plain copies and other libraries in the same run.')
  .showHelpAfterError()
const commands = [
  addAccess,
  addCalls,
  addCast,
  addCompress,
  addDiff,
  addGguf,
  addImage,
  addMany,
  addOnnx,
  addOnnxSpeeds,
  addOpencl,
  addQueue,
  addRemote,
  addReorder,
  addReorderBuilds,
  addResize,
  addSimplify,
  addStartup,
  addStreaming,
  addTmfile,
  addTmfileOpen,
  addView,
  addWindows,
]
for (const add of commands) add(program)
await program.parseAsync()
