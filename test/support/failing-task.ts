import { BroadcastChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'

/** `hang` never ends. */
export type FailingTask = 'answer' | 'fail' | 'hang'

/** The data of the thread: the name of a BroadcastChannel. */
export interface FailingThreadData {
  readonly channel: string
}

/** The thread says `hangs` when it runs a task that never ends. Any message to it ends it. */
const channel = new BroadcastChannel((Piscina.workerData as FailingThreadData).channel)
channel.onmessage = () => {
  throw new Error('the thread failed')
}

/** The piscina task. */
export default async function run(task: FailingTask): Promise<FailingTask> {
  if (task === 'fail') throw new Error('the task failed')
  if (task === 'hang') {
    channel.postMessage('hangs')
    await new Promise(() => {})
  }
  return task
}
