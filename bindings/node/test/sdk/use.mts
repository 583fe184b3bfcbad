// The tools and their answers are what the SDKs of Anthropic and OpenAI take; `npm run types` reads it, nothing runs it.
import type Anthropic from '@anthropic-ai/sdk'
import { Store, tools } from 'nudge-hints'
import type OpenAI from 'openai'

const all = tools(new Store(), { context: { cwd: '/work', filesOpen: ['a'] } })

export async function anthropic(client: Anthropic): Promise<void> {
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Build it.' }]
  const said = await client.messages.create({ model: 'a-model', max_tokens: 1000, messages, tools: all.anthropic() })
  messages.push({ role: 'assistant', content: said.content })
  for (const block of said.content) {
    if (block.type !== 'tool_use') continue
    const answer = all.answer(block)
    if (answer) messages.push({ role: 'user', content: [answer] })
  }
}

export async function chat(client: OpenAI): Promise<void> {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Build it.' }]
  const said = await client.chat.completions.create({ model: 'a-model', messages, tools: all.openai() })
  for (const call of said.choices[0]?.message.tool_calls ?? []) {
    if (call.type !== 'function') continue
    const answer = all.answer(call)
    if (answer) messages.push(answer)
  }
}

export async function responses(client: OpenAI): Promise<void> {
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'Build it.' }]
  const said = await client.responses.create({ model: 'a-model', input, tools: all.responses() })
  for (const item of said.output) {
    if (item.type !== 'function_call') continue
    const answer = all.answer(item)
    if (answer) input.push(answer)
  }
}
