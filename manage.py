#!/usr/bin/env python
"""Tollbar's command line: `python manage.py help`."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gatewaysite.settings")
    from django.core.management import execute_from_command_line

    from gatewaysite.env import SettingError

    try:
        execute_from_command_line(sys.argv)
    except SettingError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
