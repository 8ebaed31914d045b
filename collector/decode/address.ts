/** Returns the text of the IPv4 or IPv6 address at `at`. */
export function addressText(view: DataView, at: number, version: number): string {
  if (version === 4) {
    return `${view.getUint8(at)}.${view.getUint8(at + 1)}.${view.getUint8(at + 2)}.${view.getUint8(at + 3)}`
  }
  return ipv6Text(view, at)
}

/**
 * RFC 5952 §4: lower case, no leading zeros, and "::" for the longest run of two or more zero
 * groups, the first of equals.
 */
function ipv6Text(view: DataView, at: number): string {
  let longest = 0
  let longestStart = -1
  for (let group = 0; group < 8; group++) {
    let run = 0
    while (group + run < 8 && view.getUint16(at + (group + run) * 2) === 0) run++
    if (run > longest) {
      longest = run
      longestStart = group
    }
    group += run
  }
  const groups = (from: number, to: number) => {
    const texts: string[] = []
    for (let group = from; group < to; group++) texts.push(view.getUint16(at + group * 2).toString(16))
    return texts.join(':')
  }
  if (longest < 2) return groups(0, 8)
  return `${groups(0, longestStart)}::${groups(longestStart + longest, 8)}`
}
