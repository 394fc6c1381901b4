/** Computes the positions of boxes in a worker, so that the page stays responsive. */
import { type GraphToPlace, placeNodes } from './place_nodes.js'

interface Worker {
  onmessage: (event: MessageEvent<GraphToPlace>) => void
  postMessage(message: unknown, transfer: Transferable[]): void
}

const worker = self as unknown as Worker

worker.onmessage = ({ data }) => {
  const placed = placeNodes(data)
  worker.postMessage(placed, [placed.x.buffer, placed.y.buffer])
}
