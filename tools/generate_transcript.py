"""Writes a transcript of so many turns, for measuring an import: generate_transcript.py TURNS [TURNS_A_SESSION] > FILE.

The same numbers give the same file. Half of the turns are Chinese; one in forty states something explicitly.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime, timedelta

ENGLISH = [
    "the", "a", "service", "port", "server", "database", "release", "version", "config",
    "user", "memory", "session", "build", "test", "docker", "network", "timeout", "retry",
    "index", "query", "cache", "token", "branch", "review", "deploy", "staging",
    "production", "backup", "log", "metric", "alert", "certificate", "proxy", "cluster",
]  # fmt: skip
CHINESE = [
    "服务", "端口", "数据库", "版本", "配置", "用户", "记忆", "会话", "构建", "测试", "网络", "超时", "重试", "索引",
    "查询", "缓存", "分支", "评审", "部署", "备份", "日志", "证书", "集群",
]  # fmt: skip
EXPLICIT = ["Remember that the {} is {}.", "记住：{}是 {}。"]
BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)


def main(turns: int, a_session: int = 20) -> None:
    draw = random.Random(turns)
    for number in range(turns):
        is_chinese = number // 2 % 2 == 1
        words = CHINESE if is_chinese else ENGLISH
        if number % 40 == 0:
            content = EXPLICIT[is_chinese].format(draw.choice(words), draw.randrange(65536))
        else:
            content = ("" if is_chinese else " ").join(draw.choices(words, k=draw.randint(5, 60)))
        turn = {
            "session_id": f"session-{number // a_session}",
            "role": "user" if number % 2 == 0 else "assistant",
            "content": content,
            "occurred_at": (BEGAN + timedelta(seconds=20 * number)).isoformat(),
        }
        sys.stdout.write(json.dumps(turn, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
