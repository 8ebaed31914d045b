import { SyslogMessage } from '../../engine/ingest/syslog/message.ts'
import { readSyslog } from '../../engine/ingest/syslog/read-message.ts'
import { MessageReader, RECEIVED_MS, type Read } from './log-rows.ts'

/** Reads a message as the listeners do: splits header and content, then detects the format. */
export function readMessage(reader: MessageReader, text: string): Read {
  const bytes = Buffer.from(text)
  const message = new SyslogMessage()
  readSyslog(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0, bytes.length, message, RECEIVED_MS)
  return reader.read(bytes.subarray(message.msgStart))
}

/** Reads messages one after the other, as from one source. */
export function readMessages(messages: readonly string[]): Read[] {
  const reader = new MessageReader()
  return messages.map((message) => readMessage(reader, message))
}
